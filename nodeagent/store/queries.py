"""Reads: SQL to values, on whatever connection is given.

Each call copies a page of rows and so ends its read transaction: a slow subscriber never keeps the
log from being checkpointed. It never writes, and opens nothing.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from nodeagent.core.model import Carried
from nodeagent.store import codec
from nodeagent.store.change import AuditRow, ConsumerRow, Numbers
from nodeagent.store.disk.repair import damage_of
from nodeagent.store.errors import StoreDamagedError
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
class StateRow:
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


def read_state(connection: sqlite3.Connection) -> StateRow:
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
    return StateRow(
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


def read_cells(connection: sqlite3.Connection, state: StateRow) -> tuple[Carried, ...]:
    """The base of a replay, in its order. Raises StoreDamagedError where it is not whole."""
    rows: list[Any] = _opened(CARRIED, connection.execute(f"{CARRIED.select} ORDER BY ordinal"))
    if len(rows) != state.base_cells or any(row[-1] != state.base_input for row in rows):
        raise StoreDamagedError(f"of {state.base_cells} records of the live state there are {len(rows)}")
    return codec.decode_cells(rows)


def read_inputs(connection: sqlite3.Connection, state: StateRow) -> tuple[Stamped, ...]:
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
    are damaged and left out; those that made way are left out, too. A page of rows that all are is continued
    with the next.
    """
    damaged = 0
    while True:
        rows = connection.execute(
            f"{EVENT.select} WHERE seq > ? AND seq <= ? AND body != x''"
            " AND seq >= (SELECT oldest_seq FROM state) ORDER BY seq LIMIT ?",
            (after_seq, last_seq, limit),
        ).fetchall()
        events = list(_sound(map(_event, rows)))
        damaged += len(rows) - len(events)
        if events or not rows:
            return events, damaged
        after_seq = rows[-1][0]


def first_since(connection: sqlite3.Connection, after_seq: int, until_seq: int, since_ns: int) -> int | None:
    """The first number of (after_seq, until_seq] with this wall time or a later one; no row is checked."""
    row = connection.execute(
        "SELECT seq FROM event WHERE seq > ? AND seq <= ? AND wall_ns >= ? ORDER BY seq LIMIT 1",
        (after_seq, until_seq, since_ns),
    ).fetchone()
    return None if row is None else int(row[0])


def last_before(connection: sqlite3.Connection, after_seq: int, until_seq: int, until_ns: int) -> int | None:
    """The last number of (after_seq, until_seq] with an earlier wall time; no row is checked."""
    row = connection.execute(
        "SELECT seq FROM event WHERE seq > ? AND seq <= ? AND wall_ns < ? ORDER BY seq DESC LIMIT 1",
        (after_seq, until_seq, until_ns),
    ).fetchone()
    return None if row is None else int(row[0])


def read_audits(connection: sqlite3.Connection, after_number: int, limit: int) -> list[AuditRow]:
    """Entries that are damaged, or have made way, are left out."""
    rows = connection.execute(
        f"{AUDIT.select} WHERE number > ? AND what != '' ORDER BY number LIMIT ?", (after_number, limit)
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
