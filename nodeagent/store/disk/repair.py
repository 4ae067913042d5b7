"""Puts a new file in the place of a damaged one, with every row that is left of it; the damaged one is kept
aside.

Whatever moment the process dies at, the next finds the old file or the new one, whole. It runs on the
writer's thread and blocks. What the daemon makes of the loss is not decided here.
"""

import contextlib
import logging
import os
import shutil
import sqlite3
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final

import msgspec

from nodeagent.core.model import Tick
from nodeagent.store import codec
from nodeagent.store.disk.salvage import LONG, Salvage, rows_of, salvage
from nodeagent.store.disk.writer import Database, index_of, log_of
from nodeagent.store.layout import DAMAGE, INPUT, SCHEMA_VERSION, STATE, Table
from nodeagent.store.records import Damage

_log = logging.getLogger(__name__)

_NEW: Final = ".new"
_ASIDE: Final = ".damaged-"
_ASIDE_KEPT: Final = 3
_MOST_LOST: Final = 100_000

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(tuple[tuple[str, bytes], ...])


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOrigin:
    """What a new file begins with where nothing else is left: the machine that writes it, and when."""

    uuid: str
    machine_id: str
    wall_ns: int


def create(path: Path, begin: FileOrigin) -> None:
    """A new, empty store. Raises sqlite3.Error or OSError, and then there is none."""
    with _new_file(path) as connection:
        _write_state(connection, begin, None)
    _put_in_place(path)


def repair(
    database: Database,
    begin: FileOrigin,
    why: str,
    *,
    is_ours: bool = True,
    is_cut_short: bool = False,
    repaired_of: str = "",
) -> Damage:
    """Put a new file in place with what is left; with nothing, where it is not ours. Raises sqlite3.Error or
    OSError.

    The next daemon reports it; not so where the file ``is_cut_short`` and nothing is missing. A file that
    is itself the repaired one of another, ``repaired_of`` that was kept aside, is not kept as well.
    Refused while this process has the file open elsewhere: SQLite removes the log by its name when the last
    connection closes, and that name will be the new store's.
    """
    database.close()
    path = database.path
    if _is_open(path):
        raise OSError(f"{path} is damaged ({why}) and cannot be set aside: it is still being read")
    source = path if is_ours and not path.is_dir() else Path(os.devnull)
    left = salvage(source)
    damage = Damage(
        why=why,
        aside=repaired_of or _name_aside(path),
        lost=left.lost,
        is_whole=left.is_whole,
        doubtful=left.doubtful,
    )
    lost = ", ".join(damage.lost) or "nothing"
    _log.critical("store: %s is damaged (%s): moved to %s; lost: %s", path, why, damage.aside, lost)
    with _new_file(path) as connection:
        _fill(connection, source, left, LONG)
        if damage.lost or not is_cut_short:
            _write_damage(connection, damage)
        _write_state(connection, begin, left)
    _put_in_place(path, "" if repaired_of else damage.aside)
    return damage


def in_memory(path: Path, begin: FileOrigin, why: str) -> sqlite3.Connection:
    """What is left of a damaged file, without its history; the file stays. Raises OSError, sqlite3.Error."""
    left = salvage(path)
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(_schema())
    _fill(connection, path, left, (INPUT,))
    _write_damage(connection, Damage(why=why, lost=left.lost, is_whole=left.is_whole, doubtful=left.doubtful))
    _write_state(connection, begin, left)
    return connection


def finish(path: Path) -> None:
    """What an interrupted repair has left: the new file takes the name where the old one has given it up."""
    fresh = path.with_name(path.name + _NEW)
    if fresh.exists() and not path.exists() and _is_complete(fresh):
        _log.warning("store: finishing an interrupted repair of %s", path)
        _put_in_place(path, _name_aside(path))
    _forget(fresh)


def damage_of(row: Any) -> Damage:
    """As a row of its table gives it."""
    _, why, aside, lost, is_whole, doubtful = row
    cells = [(0, kind, body, 0) for kind, body in _decoder.decode(doubtful)]
    return Damage(
        why=why,
        aside=aside,
        lost=tuple(lost.splitlines()),
        is_whole=bool(is_whole),
        doubtful=codec.decode_cells(cells),
    )


def _fill(connection: sqlite3.Connection, source: Path, left: Salvage, long: Collection[Table]) -> None:
    for table, rows in left.rows.items():
        connection.executemany(table.insert, [table.sealed(row) for row in rows])
    for table, row, is_sealed in rows_of(source, long):
        connection.execute(table.replace if is_sealed else table.insert_if_new, table.sealed(row))
    _close_holes(connection, left.base)


def _close_holes(connection: sqlite3.Connection, base: int) -> None:
    """Where an input since the base is lost, only time passes: a replay of the rest meets each number.

    A number far beyond all others is none: it was in a row from before there were checksums.
    """
    kind, body = codec.encode_input(Tick())
    numbers = connection.execute(
        "SELECT number, rule_ns, wall_ns FROM input WHERE number > ? ORDER BY number", (base,)
    ).fetchall()
    last = base
    for number, rule_ns, wall_ns in numbers:
        if number - last > _MOST_LOST:
            connection.execute("DELETE FROM input WHERE number > ?", (last,))
            return
        lost = ((each, rule_ns, wall_ns, kind, body) for each in range(last + 1, number))
        connection.executemany(INPUT.insert, map(INPUT.sealed, lost))
        last = number


def _write_damage(connection: sqlite3.Connection, damage: Damage) -> None:
    (number,) = connection.execute("SELECT COALESCE(MAX(number), 0) + 1 FROM damage").fetchone()
    cells = [(kind, body) for _, kind, body, _ in codec.encode_cells(damage.doubtful, 0)]
    lost = "\n".join(damage.lost)
    row = (number, damage.why, damage.aside, lost, int(damage.is_whole), _encoder.encode(cells))
    connection.execute(DAMAGE.insert, DAMAGE.sealed(row))


@contextlib.contextmanager
def _new_file(path: Path) -> Iterator[sqlite3.Connection]:
    """One with the tables, under another name. All that is done with it is one transaction."""
    fresh = path.with_name(path.name + _NEW)
    _forget(fresh)
    with contextlib.closing(sqlite3.connect(fresh, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(f"BEGIN IMMEDIATE;\n{_schema()}\nPRAGMA user_version = {SCHEMA_VERSION};")
        yield connection
        connection.execute("COMMIT")


def _schema() -> str:
    return resources.files("nodeagent.store").joinpath("schema.sql").read_text()


def _write_state(connection: sqlite3.Connection, begin: FileOrigin, left: Salvage | None) -> None:
    """The state as it was, with the rows that there are. Numbers may be given a second time: a new epoch."""
    state = (left.state if left is not None else None) or _state_without(connection, begin, left)
    last_input, last_seq, last_audit = (
        connection.execute(f"SELECT COALESCE(MAX({table.columns[0]}), 0) FROM {table.name}").fetchone()[0]
        for table in LONG
    )
    values = {
        **state,
        "epoch": max(state["epoch"] + 1, begin.wall_ns // 1_000_000) if left is not None else 1,
        # No further than the inputs go: the next ones follow them.
        "last_input": max(state["base_input"], last_input),
        "last_seq": max(state["last_seq"], last_seq),
        "last_audit": max(state["last_audit"], last_audit),
        "base_cells": connection.execute("SELECT COUNT(*) FROM carried").fetchone()[0],
    }
    connection.execute(STATE.insert, STATE.sealed(tuple(values[column] for column in STATE.columns)))


def _state_without(
    connection: sqlite3.Connection, begin: FileOrigin, left: Salvage | None
) -> Mapping[str, Any]:
    """Where none is left: the clocks as the newest input has them."""
    newest = connection.execute("SELECT rule_ns, wall_ns FROM input ORDER BY number DESC LIMIT 1").fetchone()
    oldest = connection.execute("SELECT MIN(seq) FROM event").fetchone()[0]
    return {
        **dict.fromkeys(STATE.columns, 0),
        "only": 1,
        "uuid": begin.uuid,
        "machine_id": begin.machine_id,
        "opened_wall_ns": begin.wall_ns,
        "oldest_seq": oldest or 1,
        "engine_now_ns": newest[0] if newest else 0,
        "anchor_boot_id": "" if newest else None,
        "anchor_boottime_ns": 0 if newest else None,
        "anchor_rule_ns": newest[0] if newest else None,
        "anchor_wall_ns": newest[1] if newest else None,
        "base_input": left.base if left is not None else 0,
    }


def _put_in_place(path: Path, aside: str = "") -> None:
    """The old file gives up its name first, then its log, then the new one takes it: see ``finish``."""
    if aside:
        for old in (path, log_of(path)):
            if old.exists():
                old.rename(path.with_name(old.name.replace(path.name, aside, 1)))
    for left in (log_of(path), index_of(path)):
        left.unlink(missing_ok=True)
    path.with_name(path.name + _NEW).rename(path)
    _forget_old_ones(path)
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_complete(fresh: Path) -> bool:
    try:
        with contextlib.closing(sqlite3.connect(fresh)) as connection:
            return bool(connection.execute("SELECT COUNT(*) FROM state").fetchone()[0])
    except sqlite3.Error:
        return False


def _forget(fresh: Path) -> None:
    for each in (fresh, fresh.with_name(fresh.name + "-journal")):
        each.unlink(missing_ok=True)


def _name_aside(path: Path) -> str:
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime()) + f"-{time.time_ns() % 1_000_000_000:09d}"
    return f"{path.name}{_ASIDE}{stamp}"


def _forget_old_ones(path: Path) -> None:
    kept = sorted(
        each for each in path.parent.glob(f"{path.name}{_ASIDE}*") if not each.name.endswith("-wal")
    )
    for old in kept[:-_ASIDE_KEPT]:
        for each in (old, log_of(old)):
            if each.is_dir():
                shutil.rmtree(each)
            else:
                each.unlink(missing_ok=True)


def _is_open(path: Path) -> bool:
    for link in Path("/proc/self/fd").iterdir():
        try:
            if link.samefile(path):
                return True
        except OSError:
            # A descriptor that was closed meanwhile, or one of something that has no file.
            continue
    return False
