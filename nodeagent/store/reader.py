"""Reads: SQL to values, on whatever connection is given, and a connection of their own for the outlets.

Each call copies a page of rows and so ends its read transaction: a slow subscriber never keeps the
log from being checkpointed. It never writes.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from nodeagent.core.model import Carried
from nodeagent.store import codec
from nodeagent.store.change import AuditRow, ConsumerRow, Numbers
from nodeagent.store.damage.repair import damage_of
from nodeagent.store.disk.thread import AbandonedError, DiskThread
from nodeagent.store.disk.writer import as_ours, is_trouble
from nodeagent.store.errors import StoreDamagedError, StoreUnreadableError
from nodeagent.store.layout import (
    AUDIT,
    CARRIED,
    CATALOG,
    CONSUMER,
    CURSOR,
    DAMAGE,
    EVENT,
    INPUT,
    STATE,
    Row,
    Table,
)
from nodeagent.store.records import ClockAnchor, Cursor, Damage, Stamped, StoredEvent, StoreId

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
    base_cells: int

    @property
    def unused(self) -> bool:
        """Whether nothing was ever stored."""
        return self.last == Numbers() and self.base_input == 0


def read_state(connection: sqlite3.Connection) -> State:
    """Raise StoreDamagedError where the row is missing, or is not as it was written."""
    row = connection.execute(STATE.select).fetchone()
    if row is None:
        raise StoreDamagedError("the store has no row of state")
    state: dict[str, Any] = dict(zip(STATE.columns, STATE.opened(row), strict=True))
    anchor = None
    if state["anchor_boot_id"] is not None:
        anchor = ClockAnchor(
            boot_id=state["anchor_boot_id"],
            boottime_ns=state["anchor_boottime_ns"],
            rule_ns=state["anchor_rule_ns"],
            wall_ns=state["anchor_wall_ns"],
        )
    return State(
        store_id=StoreId(uuid=state["uuid"], epoch=state["epoch"]),
        machine_id=state["machine_id"],
        last=Numbers(seq=state["last_seq"], input=state["last_input"], audit=state["last_audit"]),
        oldest_seq=state["oldest_seq"],
        engine_now_ns=state["engine_now_ns"],
        anchor=anchor,
        base_input=state["base_input"],
        base_seq=state["base_seq"],
        base_ns=state["base_ns"],
        base_cells=state["base_cells"] or 0,
    )


def read_cells(connection: sqlite3.Connection, state: State) -> tuple[Carried, ...]:
    """The base of a replay, in its order. Raise StoreDamagedError where it is not whole."""
    rows: list[Any] = _opened(CARRIED, connection.execute(f"{CARRIED.select} ORDER BY ordinal"))
    if len(rows) != state.base_cells or any(row[-1] != state.base_input for row in rows):
        raise StoreDamagedError(f"of {state.base_cells} records of the live state there are {len(rows)}")
    return codec.decode_cells(rows)


def read_inputs(connection: sqlite3.Connection, state: State) -> tuple[Stamped, ...]:
    """All inputs since the base, in order. Raises StoreDamagedError where one is missing or not decoded."""
    since = connection.execute(f"{INPUT.select} WHERE number > ? ORDER BY number", (state.base_input,))
    rows: list[Any] = _opened(INPUT, since)
    wanted = state.last.input - state.base_input
    if len(rows) != wanted:
        raise StoreDamagedError(f"of {wanted} inputs since the last compaction there are {len(rows)}")
    return codec.decode_inputs(rows)


def read_cursors(connection: sqlite3.Connection) -> dict[str, Cursor]:
    rows: list[Any] = _opened(CURSOR, connection.execute(CURSOR.select))
    return {name: Cursor(boot_id=boot_id, seq=seq) for name, boot_id, seq in rows}


def read_consumers(connection: sqlite3.Connection) -> list[ConsumerRow]:
    rows: list[Any] = _opened(CONSUMER, connection.execute(CONSUMER.select))
    return rows


def read_damages(connection: sqlite3.Connection) -> tuple[Damage, ...]:
    """Those that no daemon has reported yet, the first that was found first."""
    return tuple(map(damage_of, _opened(DAMAGE, connection.execute(f"{DAMAGE.select} ORDER BY number"))))


def read_events(
    connection: sqlite3.Connection, after_seq: int, last_seq: int, limit: int
) -> tuple[list[StoredEvent], int]:
    """Events of (after_seq, last_seq] that retention has kept, oldest first, and how many rows of the page
    are damaged and left out. A page of rows that all are is continued with the next.
    """
    damaged = 0
    while True:
        rows = connection.execute(
            f"{EVENT.select} WHERE seq > ? AND seq <= ?"
            " AND seq >= (SELECT oldest_seq FROM state) ORDER BY seq LIMIT ?",
            (after_seq, last_seq, limit),
        ).fetchall()
        events = list(_sound(map(_event, rows)))
        damaged += len(rows) - len(events)
        if events or not rows:
            return events, damaged
        after_seq = rows[-1][0]


def read_audits(connection: sqlite3.Connection, after_number: int, limit: int) -> list[AuditRow]:
    """Entries that are damaged are left out."""
    rows = connection.execute(
        f"{AUDIT.select} WHERE number > ? ORDER BY number LIMIT ?", (after_number, limit)
    ).fetchall()
    found: list[Any] = list(_sound(_sound_row(AUDIT, row) for row in rows))
    return found


def read_catalog(connection: sqlite3.Connection, digest: str) -> bytes | None:
    """Raise StoreDamagedError where it is not as it was written."""
    rows = _opened(CATALOG, connection.execute(f"{CATALOG.select} WHERE digest = ?", (digest,)))
    return _catalog(rows[0])[1] if rows else None


def read_last_catalog(connection: sqlite3.Connection) -> tuple[str, bytes] | None:
    """As ``read_catalog``, with its digest."""
    rows = _opened(CATALOG, connection.execute(f"{CATALOG.select} ORDER BY ordinal DESC LIMIT 1"))
    return _catalog(rows[0]) if rows else None


def read_catalogs(connection: sqlite3.Connection) -> list[tuple[str, bytes]]:
    """All that are kept, the last good one last. Raises StoreDamagedError as ``read_catalog``."""
    rows = _opened(CATALOG, connection.execute(f"{CATALOG.select} ORDER BY ordinal"))
    return [_catalog(row) for row in rows]


def _catalog(opened: Any) -> tuple[str, bytes]:
    digest, _, _, body = opened
    return digest, body


def _opened(table: Table, rows: Iterable[Row]) -> list[Row]:
    return [table.opened(row) for row in rows]


def _event(row: Any) -> StoredEvent | None:
    opened: Any = _sound_row(EVENT, row)
    try:
        return None if opened is None else codec.decode_event(opened)
    except StoreDamagedError:
        return None


def _sound_row(table: Table, row: Row) -> Row | None:
    try:
        return table.opened(row)
    except StoreDamagedError:
        return None


def _sound(found: Iterable[T | None]) -> Iterator[T]:
    return (each for each in found if each is not None)


def connect(path: Path) -> sqlite3.Connection:
    """Open an existing store for reading, also on a read-only filesystem; raise sqlite3.Error.

    A file with a non-empty log beside it needs the log's index, which SQLite can read but not make
    there; without a log the file is whole and may be read as it lies.
    """
    try:
        return _connect(path, "mode=rw")
    except sqlite3.Error as error:
        if not is_trouble(error):
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
    return as_ours(connection)


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
        self._may_read = asyncio.Event()
        self._may_read.set()

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
            if not is_trouble(error):
                raise StoreDamagedError(str(error)) from error
            raise StoreUnreadableError(f"the disk refuses reads: {error}") from error

    async def pause(self) -> bool:
        """Close the file and answer no read until ``resume``: they wait. Whether it is closed by now."""
        self._may_read.clear()
        self.reset()
        return self._left is None or await self._has_ended(self._left)

    def resume(self) -> None:
        self._may_read.set()

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
        if not self._may_read.is_set():
            await self._wait_until_resumed()
        if self._open is not None:
            return self._open
        connection = _ReadConnection(self._path)
        self._open = (DiskThread("store-reader", connection.close), connection)
        return self._open

    async def _wait_until_resumed(self) -> None:
        try:
            async with asyncio.timeout(self._deadline_s):
                await self._may_read.wait()
        except TimeoutError:
            raise StoreUnreadableError("the file is being opened again after disk trouble") from None

    async def _has_ended(self, thread: DiskThread) -> bool:
        if not thread.finished:
            await asyncio.wait((thread.ended,), timeout=self._deadline_s)
        return thread.finished
