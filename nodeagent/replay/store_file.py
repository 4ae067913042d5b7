"""Opens a daemon's store for reading and leaves its files unchanged, also while the daemon writes to them.

If the store has a write-ahead log with an index, SQLite reads next to the writer and writes no index of its
own. A log without an index, as in a copy of the folder, is read from a copy. Stored values are not decoded
here.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from nodeagent.replay.reading import Reports
from nodeagent.store.disk.opening import FILE_NAME
from nodeagent.store.errors import StoreDamagedError
from nodeagent.store.layout import SAME_TABLES_SINCE, SCHEMA_VERSION
from nodeagent.toml.problem import Problems

_BEGINNING: Final = b"SQLite format 3\0"
_NEXT_TO_A_WRITER: Final = "mode=ro&readonly_shm=1"
_IMMUTABLE: Final = "immutable=1"
_A_COPY: Final = "mode=rw"


def database_of(path: Path) -> Path | None:
    """The database that a path means: a state folder's, or a file that is one. None for any other file."""
    if path.is_dir():
        return path / FILE_NAME
    try:
        with path.open("rb") as file:
            begins_as_one = file.read(len(_BEGINNING)) == _BEGINNING
    except OSError:
        return None  # reported when it is read
    return path if begins_as_one or path.name == FILE_NAME else None


@contextmanager
def opened(database: Path) -> Iterator[sqlite3.Connection]:
    """A connection that sees one moment of the store, for as long as it is open.

    Raises ReplayError where the file cannot be read or is no store, also later while it is read.
    """
    reports = Reports(str(database), Problems())
    try:
        with database.open("rb"):
            pass  # its refusal is clearer than SQLite's
        with tempfile.TemporaryDirectory(prefix="nodeagent-replay-") as folder:
            connection = _connected(database, Path(folder))
            try:
                yield connection
            finally:
                connection.close()
    except FileNotFoundError:
        reports.add(None, "", f"not there; a state folder of nodeagent holds {FILE_NAME}")
    except OSError as error:
        reports.add(None, "", f"cannot be read: {error.strerror or error}")
    except (sqlite3.Error, StoreDamagedError) as error:
        reports.add(None, "", f"cannot be read as a store of nodeagent: {error}")
    reports.raise_any()


def _connected(database: Path, folder: Path) -> sqlite3.Connection:
    log = database.with_name(database.name + "-wal")
    if not log.exists():
        return _connect(database, _IMMUTABLE)
    try:
        return _connect(database, _NEXT_TO_A_WRITER)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise
    copy = folder / FILE_NAME
    shutil.copyfile(database, copy)
    shutil.copyfile(log, copy.with_name(copy.name + "-wal"))
    return _connect(copy, _A_COPY)


def _connect(database: Path, how: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{database.absolute().as_uri()}?{how}", uri=True, isolation_level=None)
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("BEGIN")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if not SAME_TABLES_SINCE <= version <= SCHEMA_VERSION:
            newer = "; a newer nodeagent wrote it" if version > SCHEMA_VERSION else ""
            known = f"this nodeagent knows {SCHEMA_VERSION}"
            raise StoreDamagedError(f"its schema is version {version}, {known}{newer}")
        connection.execute("SELECT only FROM state").fetchone()
    except (sqlite3.Error, StoreDamagedError):
        connection.close()
        raise
    return connection
