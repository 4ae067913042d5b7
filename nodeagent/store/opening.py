"""Opening the file: create it, read back a life, or set a damaged one aside.

Runs on the writer's thread and blocks. It judges only the file; what the daemon does when the disk
refuses is decided by its callers.
"""

import fcntl
import logging
import os
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from nodeagent.store import codec, reader
from nodeagent.store.change import ConsumerRow
from nodeagent.store.errors import StoreDamagedError, StoreInUseError, UnreadLifeError
from nodeagent.store.reader import State
from nodeagent.store.records import Recovery
from nodeagent.store.writer import Database, is_damage, is_full

_log = logging.getLogger(__name__)

FILE_NAME = "store.db"
SCHEMA_VERSION = 1

_SET_ASIDE = ".damaged-"
_SET_ASIDE_KEPT = 3
# A whole check reads the whole file; beyond this size it would cost the start its budget, and what a
# replay needs is read and decoded in any case.
_CHECKED_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """All that a starting daemon needs of the file."""

    state: State
    recovery: Recovery
    consumers: list[ConsumerRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who opens: the machine, and the store uuid to give where a file is made or belongs elsewhere."""

    machine_id: str
    new_uuid: str
    wall_ns: Callable[[], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """The line of numbers this process is on; ``unread`` if it never saw what the disk held before."""

    uuid: str
    last_seq: int
    unread: bool


class DirectoryLock:
    """Held for as long as any thread of this process may write to the directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._fd: int | None = None

    def take(self) -> None:
        """Make the directory if need be; raise StoreInUseError if another process holds it, else OSError."""
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o750)
        if self._fd is not None:
            if os.path.samestat(os.fstat(self._fd), self._directory.stat()):
                return
            # The directory that was locked has been removed and is another one now.
            self.give()
        fd = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(fd)
            raise StoreInUseError(f"{self._directory} is in use by another nodeagent") from error
        except OSError:
            os.close(fd)
            raise
        self._fd = fd

    def give(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def open_life(database: Database, identity: Identity) -> Life:
    """Open for writing and read the last life back; a damaged file is set aside and a new one begun.

    Raises sqlite3.Error or OSError where the disk refuses. When it returns, the disk took a write.
    """
    try:
        return _open_life(database, identity)
    except (sqlite3.Error, StoreDamagedError) as error:
        if not _is_bad_file(error):
            raise
        why = str(error)
    # Not within the handler: the error's frames may keep a statement, and so the file, open.
    set_aside(database, why)
    return _open_life(database, identity)


def open_again(database: Database, identity: Identity, ours: Ours) -> State:
    """Open after disk trouble and say what the disk has.

    A damaged file, or one with another line of numbers, is set aside and one begun anew. Raises
    UnreadLifeError where the start could not read what is there, sqlite3.Error or OSError where the disk
    still refuses.
    """
    try:
        _connect(database, identity)
        state = reader.read_state(database.connection)
        if ours.unread and not state.unused:
            raise UnreadLifeError(f"{database.path} answers again, but its state was not read at the start")
        if not state.unused and (state.store_id.uuid != ours.uuid or state.last.seq > ours.last_seq):
            raise StoreDamagedError(f"it holds the numbers of another store, {state.store_id}")
        return state
    except (sqlite3.Error, StoreDamagedError) as error:
        if not _is_bad_file(error):
            raise
        why = str(error)
    set_aside(database, why)
    _connect(database, identity)
    return reader.read_state(database.connection)


def read_life(path: Path) -> Life:
    """Read a life without writing a byte. Raises sqlite3.Error, OSError or StoreDamagedError."""
    connection = reader.connect(path)
    try:
        return life_of(connection)
    finally:
        connection.close()


def set_aside(database: Database, why: str) -> None:
    """Move the file and its log to a name with the time, for a person to look at; raise OSError.

    Refused while this process has the file open elsewhere: SQLite removes the log by its name when
    the last connection closes, and that name will be the new store's.
    """
    database.close()
    path = database.path
    if _is_open(path):
        raise OSError(f"{path} is damaged ({why}) and cannot be set aside: it is still being read")
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime()) + f"-{time.time_ns() % 1_000_000_000:09d}"
    aside = path.with_name(f"{path.name}{_SET_ASIDE}{stamp}")
    _log.critical("store: %s is damaged (%s): moved to %s, a new store begins", path, why, aside.name)
    for suffix in ("", "-wal"):
        source = path.with_name(path.name + suffix)
        if source.exists():
            source.rename(aside.with_name(aside.name + suffix))
    path.with_name(path.name + "-shm").unlink(missing_ok=True)
    files = sorted(path.parent.glob(f"{path.name}{_SET_ASIDE}*"))
    for old in [one for one in files if not one.name.endswith("-wal")][:-_SET_ASIDE_KEPT]:
        old.unlink(missing_ok=True)
        old.with_name(old.name + "-wal").unlink(missing_ok=True)
    _sync_directory(path.parent)


def _is_open(path: Path) -> bool:
    for link in Path("/proc/self/fd").iterdir():
        try:
            if link.samefile(path):
                return True
        except OSError:
            # A descriptor that was closed meanwhile, or one of something that has no file.
            continue
    return False


def _open_life(database: Database, identity: Identity) -> Life:
    _connect(database, identity)
    connection = database.connection
    if database.path.stat().st_size <= _CHECKED_BYTES:
        answer = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if answer != "ok":
            raise StoreDamagedError(answer)
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


def _connect(database: Database, identity: Identity) -> None:
    """Open or create; at a full disk give the ballast up and try once more."""
    try:
        database.connect()
        _create_if_new(database, identity)
    except sqlite3.Error as error:
        database.close()
        if not is_full(error) or not database.ballast.release():
            raise
        database.connect()
        _create_if_new(database, identity)


def _create_if_new(database: Database, identity: Identity) -> None:
    connection = database.connection
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == SCHEMA_VERSION:
        return
    if version != 0:
        raise StoreDamagedError(f"its schema is version {version}, this nodeagent knows {SCHEMA_VERSION}")
    schema = resources.files("nodeagent.store").joinpath("schema.sql").read_text()
    connection.executescript(f"BEGIN IMMEDIATE;\n{schema}\nPRAGMA user_version = {SCHEMA_VERSION};")
    connection.execute(
        "INSERT INTO state VALUES (1, ?, 1, ?, ?, 0, 0, 0, 1, 0, NULL, NULL, NULL, NULL, 0, 0, 0)",
        (identity.new_uuid, identity.machine_id, identity.wall_ns()),
    )
    connection.execute("COMMIT")
    _sync_directory(database.path.parent)


def life_of(connection: sqlite3.Connection) -> Life:
    """Raise StoreDamagedError, sqlite3.Error."""
    state = reader.read_state(connection)
    cells = connection.execute("SELECT ordinal, kind, body FROM carried ORDER BY ordinal").fetchall()
    return Life(
        state=state,
        consumers=reader.read_consumers(connection),
        recovery=Recovery(
            store_id=state.store_id,
            last_seq=state.last.seq,
            engine_now_ns=state.engine_now_ns,
            anchor=state.anchor,
            cursors=reader.read_cursors(connection),
            carried=codec.decode_cells(cells),
            carried_at_seq=state.base_seq,
            carried_at_ns=state.base_ns,
            inputs=reader.read_inputs(connection, state.base_input),
        ),
    )


def _is_bad_file(error: Exception) -> bool:
    if isinstance(error, StoreDamagedError):
        return True
    # SQLITE_ERROR: the file is sound, but its tables are not ours.
    return isinstance(error, sqlite3.Error) and (
        is_damage(error) or getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR
    )


def _sync_directory(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
