"""The one connection that writes, the thread that it lives on, and the space that is reserved for it.

Changes that are queued together share one transaction, and so one fsync. A write is on the disk when it
returns, or it raises; what follows then (epochs, backlog, recovery) is not decided here.
"""

import asyncio
import logging
import os
import sqlite3
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from nodeagent.store.change import Change, Statement, statements
from nodeagent.store.disk.thread import DiskThread
from nodeagent.store.errors import FileGoneError
from nodeagent.store.layout import SEAL_STATE, checksum

_HEADROOM = 4
"""Refilling the space must not fill the disk again."""

T = TypeVar("T")

_log = logging.getLogger(__name__)

GROUP_ROWS = 2_000
JOURNAL_SIZE_LIMIT = 8 * 1024 * 1024
CHECKPOINT_COMMITS = 250
CHECKPOINT_ROWS = 4_000
BUSY_TIMEOUT_S = 1.0


class Database:
    """A connection for writing. Every call blocks; use it on one thread only."""

    def __init__(self, path: Path, reserved_space: "ReservedSpace") -> None:
        self.path = path
        self.reserved_space = reserved_space
        self.space_was_short = False
        self.used_size = 0
        """Bytes in use after the last commit."""
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._log: tuple[int, int] | None = None
        self._commits = 0
        self._rows = 0

    @property
    def connection(self) -> sqlite3.Connection:
        if self._connection is None:
            raise sqlite3.ProgrammingError("the store's file is not open")
        return self._connection

    def connect(self) -> None:
        """Open the file, which must be there; raise sqlite3.Error or OSError."""
        connection = sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode=rw",
            uri=True,
            timeout=BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
        )
        self._connection = connection
        mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        if mode != "wal":
            raise sqlite3.OperationalError(f"the filesystem allows no write-ahead log (journal mode {mode})")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA journal_size_limit = {JOURNAL_SIZE_LIMIT}")
        # Checkpoints run between commits, so that no commit pays for one.
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        as_ours(connection)
        self._file, self._log = _identity(self.path), None

    def is_in_place(self) -> bool:
        """Whether the files that are written still have their names: one removed is lost at the end."""
        log = _identity(log_of(self.path))
        self._log = self._log or log
        return _identity(self.path) == self._file and log == self._log

    def execute(self, work: Iterable[Statement]) -> None:
        """Run statements in one transaction; at the first full disk give up the reserved space, try again.

        Raises sqlite3.Error, and FileGoneError where what was written has no name any more.
        """
        work = list(work)
        try:
            self._transact(work)
        except sqlite3.Error as error:
            if not is_full(error) or not self._release_reserved_space():
                raise
            self._transact(work)

    @property
    def checkpoint_due(self) -> bool:
        return self._commits >= CHECKPOINT_COMMITS or self._rows >= CHECKPOINT_ROWS

    def checkpoint(self) -> None:
        """Move the log into the file. A failure costs space, not data: it is logged."""
        self._commits = self._rows = 0
        try:
            self.connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except sqlite3.Error as error:
            _log.warning("store: a checkpoint of %s failed: %s", self.path, error)
            if is_full(error):
                self._release_reserved_space()

    def close(self) -> None:
        """Close the connection; trouble while closing leaves a log that the next open reads."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            connection.close()
        except sqlite3.Error as error:
            _log.warning("store: closing %s failed: %s", self.path, error)

    def _transact(self, work: list[Statement]) -> None:
        connection = self.connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            for sql, rows in work:
                if len(rows) == 1:
                    connection.execute(sql, rows[0])
                else:
                    connection.executemany(sql, rows)
                self._rows += len(rows)
            connection.execute(SEAL_STATE)
            connection.execute("COMMIT")
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self._commits += 1
        self.used_size = used_size(connection)
        if not self.is_in_place():
            raise FileGoneError(f"{self.path} was removed or replaced while in use")

    def _release_reserved_space(self) -> bool:
        self.space_was_short = True
        try:
            released = self.reserved_space.release()
        except OSError as error:
            _log.warning("store: the reserved space could not be released: %s", error)
            return False
        if released:
            _log.warning("store: the disk is full; the reserved space was released")
        return released


def used_size(connection: sqlite3.Connection) -> int:
    """Bytes of the file that hold something; pages freed by deletes are used again first."""
    pages, free, page_size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * page_size)


def log_of(path: Path) -> Path:
    """The write-ahead log of a database."""
    return path.with_name(path.name + "-wal")


def index_of(path: Path) -> Path:
    """The index of that log, which connections share."""
    return path.with_name(path.name + "-shm")


def as_ours(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Its statements may use ``row_checksum(LABEL, VALUE...)``, and no damaged text keeps a row from being
    looked at.
    """
    connection.create_function("row_checksum", -1, checksum, deterministic=True)
    connection.text_factory = lambda raw: raw.decode(errors="replace")
    return connection


def _identity(path: Path) -> tuple[int, int] | None:
    """None where there is none."""
    try:
        named = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return named.st_dev, named.st_ino


class Writer:
    """The asyncio face of a ``Database``: one per connection, thrown away when the disk is in trouble."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._thread = DiskThread("store-writer", database.close)
        self._queued: deque[tuple[Change, asyncio.Future[None]]] = deque()
        # Once one change failed no later one may reach the disk: it would leave a hole before it.
        self._failure: Exception | None = None

    @property
    def finished(self) -> bool:
        """Whether nothing of this writer can reach the disk any more."""
        return self._thread.finished

    def run(self, call: Callable[[], T]) -> asyncio.Future[T]:
        """Run ``call`` on the writer's thread, after what is queued."""
        return self._thread.run(call)

    def write(self, change: Change) -> asyncio.Future[None]:
        """Write in the order of calls; the future ends when it is on the disk, or with sqlite3.Error."""
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queued.append((change, written))
        self._thread.run(self._take_group).add_done_callback(self._settle)
        return written

    def abandon(self) -> None:
        self._thread.abandon()

    def finish(self) -> asyncio.Future[None]:
        return self._thread.finish()

    def _take_group(self) -> "_Group":
        """On the thread: write all that is queued by now, up to a bound, in one transaction."""
        group: list[asyncio.Future[None]] = []
        work: list[Statement] = []
        rows = 0
        while self._queued and rows < GROUP_ROWS:
            change, written = self._queued.popleft()
            group.append(written)
            work.extend(statements(change))
            rows += change.rows
        if self._failure is None and group:
            try:
                self.database.execute(work)
            except Exception as error:  # noqa: BLE001 - reported to every change of the group
                self._failure = error
        return group, self._failure

    def _settle(self, taken: "asyncio.Future[_Group]") -> None:
        if taken.exception() is not None:
            # Abandoned: the caller has taken the changes back.
            return
        group, error = taken.result()
        for written in group:
            if written.done():
                continue
            if error is None:
                written.set_result(None)
            else:
                written.set_exception(error)
        if self.database.checkpoint_due and error is None:
            self._thread.run(self.database.checkpoint)


_Group = tuple[list[asyncio.Future[None]], Exception | None]


def is_full(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL


def is_trouble(error: sqlite3.Error | OSError) -> bool:
    """Whether the disk refuses or is out of reach; else it is the file that is bad."""
    if isinstance(error, OSError):
        return True
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF in _TROUBLE and code not in _DAMAGE


_TROUBLE = frozenset(
    {
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_NOLFS,
        sqlite3.SQLITE_AUTH,
    }
)
_DAMAGE = frozenset({sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS})
"""Errors of input and output that are none of the disk's: the file ends too early, or contradicts itself."""


class ReservedSpace:
    """One file of ``size`` bytes, 0 for none. Its calls raise OSError."""

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        self._size = size

    def release(self) -> bool:
        """Give the space back; False if there was none to give."""
        try:
            self._path.unlink()
        except FileNotFoundError:
            return False
        return True

    def refill(self) -> bool:
        """Make the file again if it is missing and there is room for four; whether it exists."""
        if self._path.exists():
            return True
        free = os.statvfs(self._path.parent)
        if self._size == 0 or free.f_bavail * free.f_frsize < _HEADROOM * self._size:
            return False
        fd = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(fd, 0, self._size)
        except OSError:
            self._path.unlink()
            raise
        finally:
            os.close(fd)
        return True
