"""Reads: SQL to values, on whatever connection is given, and a connection of their own for the outlets.

Each call copies a page of rows and so ends its read transaction: a slow subscriber never keeps the
log from being checkpointed. It never writes.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from nodeagent.store import codec
from nodeagent.store.change import AuditRow, ConsumerRow, Numbers
from nodeagent.store.errors import StoreDamagedError, StoreUnreadableError
from nodeagent.store.records import ClockAnchor, Cursor, Stamped, StoredEvent, StoreId
from nodeagent.store.thread import AbandonedError, DiskThread
from nodeagent.store.writer import is_damage

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The store's one row of state, as read."""

    store_id: StoreId
    machine_id: str
    last: Numbers
    oldest_seq: int
    engine_now_ns: int
    anchor: ClockAnchor | None
    base_input: int
    base_seq: int
    base_ns: int

    @property
    def unused(self) -> bool:
        """Whether nothing was ever stored."""
        return self.last == Numbers() and self.base_input == 0


def read_state(connection: sqlite3.Connection) -> State:
    """Raise StoreDamagedError where the row is missing."""
    row = connection.execute(
        "SELECT uuid, epoch, machine_id, last_seq, last_input, last_audit, oldest_seq, engine_now_ns,"
        " base_input, base_seq, base_ns, anchor_boot_id, anchor_boottime_ns, anchor_rule_ns, anchor_wall_ns"
        " FROM state"
    ).fetchone()
    if row is None:
        raise StoreDamagedError("the store has no row of state")
    anchor = None
    if row[11] is not None:
        anchor = ClockAnchor(boot_id=row[11], boottime_ns=row[12], rule_ns=row[13], wall_ns=row[14])
    return State(
        store_id=StoreId(uuid=row[0], epoch=row[1]),
        machine_id=row[2],
        last=Numbers(seq=row[3], input=row[4], audit=row[5]),
        oldest_seq=row[6],
        engine_now_ns=row[7],
        anchor=anchor,
        base_input=row[8],
        base_seq=row[9],
        base_ns=row[10],
    )


def read_inputs(connection: sqlite3.Connection, after_number: int) -> tuple[Stamped, ...]:
    """All inputs beyond ``after_number``, in order. Raise StoreDamagedError where one cannot be decoded."""
    rows = connection.execute(
        "SELECT number, rule_ns, wall_ns, kind, body FROM input WHERE number > ? ORDER BY number",
        (after_number,),
    ).fetchall()
    return codec.decode_inputs(rows)


def read_cursors(connection: sqlite3.Connection) -> dict[str, Cursor]:
    rows = connection.execute("SELECT name, boot_id, seq FROM cursor").fetchall()
    return {name: Cursor(boot_id=boot_id, seq=seq) for name, boot_id, seq in rows}


def read_consumers(connection: sqlite3.Connection) -> list[ConsumerRow]:
    return connection.execute("SELECT name, owner, seq, acked_wall_ns FROM consumer").fetchall()


def read_events(
    connection: sqlite3.Connection, after_seq: int, last_seq: int, limit: int
) -> list[StoredEvent]:
    """Events of (after_seq, last_seq] that retention has kept, oldest first."""
    rows = connection.execute(
        "SELECT seq, wall_ns, body FROM event WHERE seq > ? AND seq <= ?"
        " AND seq >= (SELECT oldest_seq FROM state) ORDER BY seq LIMIT ?",
        (after_seq, last_seq, limit),
    ).fetchall()
    return codec.decode_events(rows)


def read_audits(connection: sqlite3.Connection, after_number: int, limit: int) -> list[AuditRow]:
    return connection.execute(
        "SELECT number, wall_ns, who, what, target, result FROM audit"
        " WHERE number > ? ORDER BY number LIMIT ?",
        (after_number, limit),
    ).fetchall()


def read_catalog(connection: sqlite3.Connection, digest: str) -> bytes | None:
    row = connection.execute("SELECT body FROM catalog WHERE digest = ?", (digest,)).fetchone()
    return None if row is None else bytes(row[0])


def read_last_catalog(connection: sqlite3.Connection) -> tuple[str, bytes] | None:
    row = connection.execute("SELECT digest, body FROM catalog ORDER BY ordinal DESC LIMIT 1").fetchone()
    return None if row is None else (row[0], bytes(row[1]))


def connect(path: Path) -> sqlite3.Connection:
    """Open an existing store for reading, also on a read-only filesystem; raise sqlite3.Error.

    A file with a non-empty log beside it needs the log's index, which SQLite can read but not make
    there; without a log the file is whole and may be read as it lies.
    """
    try:
        return _connect(path, "mode=rw")
    except sqlite3.Error as error:
        if is_damage(error):
            raise
        log = path.with_name(path.name + "-wal")
        whole = not log.exists() or log.stat().st_size == 0
        return _connect(path, "immutable=1" if whole else "mode=ro")


def _connect(path: Path, how: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{how}", uri=True, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("SELECT only FROM state").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


class _ReadConnection:
    """A connection that is opened by the first query, on the thread that queries."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def query(self, query: Callable[[sqlite3.Connection], T]) -> T:
        if self._connection is None:
            self._connection = connect(self._path)
        return query(self._connection)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


class Reader:
    """A thread and a connection for reading; both are left behind when a read hangs or fails."""

    def __init__(self, path: Path, deadline_s: float) -> None:
        self._path = path
        self._deadline_s = deadline_s
        self._open: tuple[DiskThread, _ReadConnection] | None = None
        self._left: DiskThread | None = None
        self._paused = False

    async def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``query``; raise StoreUnreadableError (disk trouble) or StoreDamagedError."""
        try:
            return await self._read(query)
        except AbandonedError:
            # Reset under way: the file may be another one now.
            pass
        try:
            return await self._read(query)
        except AbandonedError as error:
            raise StoreUnreadableError(str(error)) from error

    async def _read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        thread, connection = self._open or await self._start()
        future = thread.run(lambda: connection.query(query))
        done, _ = await asyncio.wait((future,), timeout=self._deadline_s)
        if not done:
            self.reset()
            raise StoreUnreadableError(f"the disk did not answer a read within {self._deadline_s:g} s")
        try:
            return future.result()
        except (sqlite3.Error, OSError) as error:
            self.reset()
            if isinstance(error, sqlite3.Error) and is_damage(error):
                raise StoreDamagedError(str(error)) from error
            raise StoreUnreadableError(f"the disk refuses reads: {error}") from error

    async def pause(self) -> bool:
        """Close the file and answer no read until ``resume``; whether it is closed by now."""
        self._paused = True
        self.reset()
        return self._left is None or await self._has_ended(self._left)

    def resume(self) -> None:
        self._paused = False

    def reset(self) -> None:
        """Leave the connection and its thread behind; the next read opens another."""
        if self._open is not None:
            self._left = self._open[0]
            self._left.abandon()
            self._open = None

    async def close(self) -> None:
        if self._open is not None:
            thread, self._open = self._open[0], None
            await asyncio.wait((thread.finish(),), timeout=self._deadline_s)

    async def _start(self) -> tuple[DiskThread, _ReadConnection]:
        if self._left is not None and not await self._has_ended(self._left):
            raise StoreUnreadableError("an earlier read still hangs in the disk")
        if self._paused:
            raise StoreUnreadableError("the file is being opened again after disk trouble")
        if self._open is not None:
            return self._open
        connection = _ReadConnection(self._path)
        self._open = (DiskThread("store-reader", connection.close), connection)
        return self._open

    async def _has_ended(self, thread: DiskThread) -> bool:
        if not thread.finished:
            await asyncio.wait((thread.ended,), timeout=self._deadline_s)
        return thread.finished
