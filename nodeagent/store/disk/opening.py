"""Opening the file: create it, migrate it, read back a life, and have it repaired where it is damaged.

Runs on the writer's thread and blocks. It judges only the file; what the daemon does when the disk
refuses is decided by its callers.
"""

import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from nodeagent.store import queries
from nodeagent.store.change import ConsumerRow
from nodeagent.store.disk import reader
from nodeagent.store.disk.carving import behind, frames_taken, schema_version
from nodeagent.store.disk.repair import FileOrigin, create, finish, in_memory, repair
from nodeagent.store.disk.salvage import salvage
from nodeagent.store.disk.writer import Database, index_of, is_full, is_trouble, log_of
from nodeagent.store.errors import CutShortError, NewerSchemaError, StoreDamagedError, UnreadLifeError
from nodeagent.store.layout import SCHEMA_VERSION, TABLES, migrate
from nodeagent.store.queries import StateRow
from nodeagent.store.records import Damage, StoreRecovery

_log = logging.getLogger(__name__)

FILE_NAME = "store.db"

# A whole check reads the whole file; beyond this size it would cost the start its budget, and what a
# replay needs is read and decoded in any case.
_CHECKED_BYTES = 4 * 1024 * 1024

_UNKNOWN_ORIGIN = FileOrigin(uuid="", machine_id="", wall_ns=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLife:
    """All that a starting daemon needs of the file."""

    state: StateRow
    recovery: StoreRecovery
    consumers: list[ConsumerRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreIdentity:
    """The machine that opens the store, and the uuid of a store that is made or belongs elsewhere."""

    machine_id: str
    new_uuid: str
    wall_ns: Callable[[], int]

    def begin(self) -> FileOrigin:
        return FileOrigin(uuid=self.new_uuid, machine_id=self.machine_id, wall_ns=self.wall_ns())


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """The line of numbers this process is on; ``unread`` if it never saw what the disk held before.
    ``damage`` is what a read has found wrong with the file, "" if nothing.
    """

    uuid: str
    last_seq: int
    unread: bool
    damage: str = ""


def open_life(database: Database, identity: StoreIdentity) -> StoredLife:
    """Open for writing and read the last life back; a damaged file gives way to what is left of it, or to an
    empty one where that does not open either.

    Raises sqlite3.Error or OSError where the disk refuses, NewerSchemaError where a later version wrote the
    file. When it returns, the disk took a write.
    """
    finish(database.path)
    try:
        return _open_life(database, identity)
    except Exception as error:  # noqa: BLE001 - whatever the file's bytes do to us is damage, and reported as that
        why, is_cut_short = _damage(error), isinstance(error, CutShortError)
    # Not within the handler: the error's frames may keep a statement, and so the file, open.
    repaired_of = ""
    try:
        repaired_of = repair(database, identity.begin(), why, is_cut_short=is_cut_short).aside
        return _open_life(database, identity)
    except Exception as error:  # noqa: BLE001 - as above
        why += f"; what was left of it does not open either: {_damage(error)}"
    repair(database, identity.begin(), why, is_ours=False, repaired_of=repaired_of)
    return _open_life(database, identity)


def open_again(database: Database, identity: StoreIdentity, ours: Ours) -> tuple[StateRow, Damage | None]:
    """Open after disk trouble; what the disk has, and what was damaged of it.

    Of a damaged file what is left is kept; one with another line of numbers is set aside, and a new one
    begins. Raises UnreadLifeError where the start could not read what is there, NewerSchemaError, and
    sqlite3.Error or OSError where the disk still refuses.
    """
    is_ours = True
    finish(database.path)
    try:
        _connect(database, identity)
        state = queries.read_state(database.connection)
        if ours.unread and not state.unused:
            raise UnreadLifeError(f"{database.path} answers again, but its state was not read at the start")
        is_ours = state.unused or (state.store_id.uuid == ours.uuid and state.last.seq <= ours.last_seq)
        if not is_ours:
            raise StoreDamagedError(f"it holds the numbers of another store, {state.store_id}")
        _check(database)
        if ours.damage:
            raise StoreDamagedError(ours.damage)
        return state, None
    except UnreadLifeError:
        raise
    except Exception as error:  # noqa: BLE001 - as above
        why = _damage(error)
    damage = repair(database, identity.begin(), why, is_ours=is_ours)
    _connect(database, identity)
    return queries.read_state(database.connection), damage


def read_life(path: Path, begin: FileOrigin = _UNKNOWN_ORIGIN) -> StoredLife:
    """Read a life without writing a byte, from a damaged file what is left of it. Raises sqlite3.Error,
    OSError or StoreDamagedError.
    """
    try:
        with closing(reader.connect(path)) as connection:
            return life_of(connection)
    except (sqlite3.Error, StoreDamagedError) as error:
        if isinstance(error, sqlite3.Error) and is_trouble(error):
            raise
        why = str(error)
    with closing(in_memory(path, begin, why)) as connection:
        return life_of(connection)


def _damage(error: Exception) -> str:
    """What is wrong with the file; raises the error again where it is the disk that refuses."""
    if isinstance(error, NewerSchemaError) or (
        isinstance(error, sqlite3.Error | OSError) and is_trouble(error)
    ):
        raise error
    return str(error) or type(error).__name__


def _open_life(database: Database, identity: StoreIdentity) -> StoredLife:
    _connect(database, identity)
    _check(database)
    connection = database.connection
    life = life_of(connection)
    uuid = life.state.store_id.uuid
    if life.state.machine_id != identity.machine_id:
        _log.warning("store: written on another machine: a new store id begins, its history is kept")
        uuid = identity.new_uuid
    # Also the proof that the disk takes writes.
    database.execute(
        [
            (
                "UPDATE state SET uuid = ?, machine_id = ?, opened_wall_ns = ?",
                [(uuid, identity.machine_id, identity.wall_ns())],
            )
        ]
    )
    return life_of(connection) if uuid != life.state.store_id.uuid else life


def _check(database: Database) -> None:
    for table in TABLES:
        columns = database.connection.execute(f"PRAGMA table_info({table.name})").fetchall()
        names = [name for _, name, *_ in columns]
        key = next(((kind, bool(place)) for _, _, kind, _, _, place in columns), None)
        if names != [*table.columns, "checksum"] or key != ("INTEGER" if table.is_rowid else "TEXT", True):
            raise StoreDamagedError(f"its table {table.name} is none of ours")
    if database.path.stat().st_size <= _CHECKED_BYTES:
        answer = database.connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if answer != "ok":
            raise StoreDamagedError(str(answer))


def _connect(database: Database, identity: StoreIdentity) -> None:
    """Open or create; at a full disk give the reserved space up and try once more."""
    try:
        _connect_once(database, identity)
    except sqlite3.Error as error:
        database.close()
        if not is_full(error) or not database.reserved_space.release():
            raise
        _connect_once(database, identity)


def _connect_once(database: Database, identity: StoreIdentity) -> None:
    path = database.path
    if path.is_dir():
        raise StoreDamagedError("it is a folder")
    log = log_of(path)
    if not path.exists() and not (log.exists() and log.stat().st_size):
        create(path, identity.begin())
    elif not path.exists():
        raise StoreDamagedError("the file is gone, and its log is there")
    elif path.stat().st_size == 0:
        raise StoreDamagedError("it is empty")
    _check_version(path)
    _check_log(path)
    database.connect()
    if migrate(database.connection):
        # What installs a package reads nothing of a store but its header (packaging/scripts/preinst.sh).
        database.checkpoint()


def _check_log(path: Path) -> None:
    """A commit behind which others follow was on the disk: if SQLite does not take it, the log is damaged.

    The index of the log is made again, since only then SQLite looks at its checksums; and by a connection
    that may not write, for only such a one leaves the log as it is.
    """
    index = index_of(path)
    index.unlink(missing_ok=True)
    if not log_of(path).exists():
        return
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
        end = behind(path, frames_taken(index))
    if end.commits > 1 or (end.commits and end.goes_on):
        raise StoreDamagedError("its log is damaged")
    if end.commits:
        raise CutShortError("the last commit in its log is not whole: the power failed, or it is damaged")


def _check_version(path: Path) -> None:
    """A header that is damaged may name any version: the state of a file that is ours proves itself."""
    version = schema_version(path)
    if version > SCHEMA_VERSION and salvage(path).state is None:
        raise NewerSchemaError(
            f"{path} was written by a newer nodeagent (schema {version}; this one knows {SCHEMA_VERSION}):"
            " install that version again, or move the file away"
        )


def life_of(connection: sqlite3.Connection) -> StoredLife:
    """Raise StoreDamagedError, sqlite3.Error."""
    state = queries.read_state(connection)
    return StoredLife(
        state=state,
        consumers=queries.read_consumers(connection),
        recovery=StoreRecovery(
            store_id=state.store_id,
            last_seq=state.last.seq,
            engine_now_ns=state.engine_now_ns,
            anchor=state.anchor,
            cursors=queries.read_cursors(connection),
            carried=queries.read_cells(connection, state),
            carried_at_seq=state.base_seq,
            carried_at_ns=state.base_ns,
            inputs=queries.read_inputs(connection, state),
            damages=queries.read_damages(connection),
        ),
    )
