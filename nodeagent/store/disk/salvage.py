"""What of a damaged store is left: the rows that prove themselves, and how many are missing among them.

It reads the file's pages as they lie (``carving``) and asks of each row whether it is as it was written
(``layout``); what SQLite makes of the file plays no part. It decides nothing about faults, and writes
nothing.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from nodeagent.core.model import Carried, Condition, Hold, Promotion
from nodeagent.store import codec, tags
from nodeagent.store.disk.carving import Carved, carve
from nodeagent.store.errors import StoreDamagedError
from nodeagent.store.layout import (
    AUDIT,
    CARRIED,
    CONSUMER,
    CURSOR,
    EMPTIED,
    EVENT,
    INPUT,
    STATE,
    TABLES,
    Row,
    SqlValue,
    Table,
)

Rows = dict[SqlValue, Row]
"""Rows by their key."""

LONG: Final = (INPUT, EVENT, AUDIT)
"""The tables that grow without end: of these only the numbers are kept in memory."""

_SHORT: Final = tuple(table for table in TABLES if table not in LONG)


@dataclass(frozen=True, slots=True, kw_only=True)
class Salvage:
    """``rows`` are those of the short tables, without checksums; of the base those of ``base``, which is the
    number of the input that it is the sum of. ``numbers`` are the keys of the long ones. ``state`` is that of
    this base, None where it is lost.

    ``cells``, ``inputs``, ``events`` and ``audits`` count what is missing: of the base, of what came
    since, and of what should be kept; of a base that gave way to another, all its cells. ``isolating``: of
    the missing cells, those that may be such as keep work off a device. ``doubtful`` are cells that can be
    decoded but are not as they were written.
    """

    rows: Mapping[Table, tuple[Row, ...]]
    numbers: Mapping[Table, Collection[int]]
    state: Mapping[str, Any] | None
    base: int
    cells: int
    isolating: int
    inputs: int
    events: int
    audits: int
    doubtful: tuple[Carried, ...]

    @property
    def is_whole(self) -> bool:
        """Whether nothing that keeps work off a device is missing, but for what the history has as well."""
        return self.state is not None and not self.isolating and not (self.inputs and self.events)

    @property
    def lost(self) -> tuple[str, ...]:
        """What is missing, as text."""
        if self.state is None and not any(self.rows.values()) and not any(self.numbers.values()):
            return ("everything",)
        counts = (
            (self.cells, "records of the live state"),
            (self.inputs, "inputs since the last compaction"),
            (self.events, "events of the history"),
            (self.audits, "entries of the audit log"),
        )
        clock = () if self.state is not None else ("how far the store had come",)
        return (*clock, *(f"{count} {what}" for count, what in counts if count))


def salvage(path: Path) -> Salvage:
    """All that the file and its log hold; nothing where there is no file. Raises OSError where they cannot be
    read.
    """
    found = _Found()
    for carved in carve(path):
        for table, row, is_sealed in _meanings(carved):
            found.take(table, row, is_sealed)
        found.spoilt.extend(_spoilt_cell(carved))
    return found.chosen()


def rows_of(path: Path, tables: Collection[Table]) -> Iterator[tuple[Table, Row, bool]]:
    """Every row of these tables, as often as it lies there; and has it its checksum? Raises OSError."""
    for carved in carve(path):
        yield from (meaning for meaning in _meanings(carved) if meaning[0] in tables)


def _meanings(carved: Carved) -> Iterator[tuple[Table, Row, bool]]:
    """Its number of values and its checksum show of which table it is; without one, the values' types."""
    former = []
    for table in TABLES:
        row = _row(table, carved)
        if row is None:
            continue
        if len(row) == len(table.columns) + 1:
            if _is_sealed(table, row) and _is_decodable(table, row[:-1]):
                # A row of another table, from before checksums, may look like this one with its own.
                yield table, row[:-1], True
                return
        elif len(row) == len(table.columns) - _LATER_COLUMNS.get(table, 0):
            row += (None,) * _LATER_COLUMNS.get(table, 0)
            if table.fits(row) and _is_decodable(table, row):
                former.append((table, row, False))
    yield from former


def _is_sealed(table: Table, row: Row) -> bool:
    return table.is_sealed(row) and table.fits(row[:-1])


def _row(table: Table, carved: Carved) -> Row | None:
    """As it would be selected; None where it cannot be of this table."""
    if not table.is_rowid:
        return carved.values
    return (carved.rowid, *carved.values[1:]) if carved.values[:1] == (None,) else None


def _spoilt_cell(carved: Carved) -> Iterator[Row]:
    row = _row(CARRIED, carved)
    if row is not None and CARRIED.fits(row[:-1]) and not CARRIED.is_sealed(row):
        yield row[:-1]


@dataclass(slots=True)
class _Found:
    """Rows as they come, old versions among them: ``sealed`` with their checksum, ``former`` from before
    there were any.

    ``bases`` are the cells by the base that they belong to, ``states`` the states that rest on it; ``spoilt``
    have another checksum than their own.
    """

    sealed: dict[Table, Rows] = field(default_factory=lambda: {table: {} for table in _SHORT})
    former: dict[Table, Rows] = field(default_factory=lambda: {table: {} for table in _SHORT})
    numbers: dict[Table, set[int]] = field(default_factory=lambda: {table: set() for table in LONG})
    bases: dict[int, Rows] = field(default_factory=dict)
    states: dict[int, Row] = field(default_factory=dict)
    spoilt: list[Row] = field(default_factory=list)

    def take(self, table: Table, row: Row, is_sealed: bool) -> None:
        if table in LONG:
            self.numbers[table].add(_as_number(row[0]))
        elif not is_sealed:
            _keep_newer(self.former[table], table, row)
        elif table is CARRIED:
            self.bases.setdefault(_as_number(row[-1]), {})[row[0]] = row
        else:
            _keep_newer(self.sealed[table], table, row)
            if table is STATE:
                self.states[_as_number(row[STATE.columns.index("base_input")])] = row

    def chosen(self) -> Salvage:
        """What has a checksum goes before what is from before there were any."""
        rows = {table: self.former[table] | self.sealed[table] for table in _SHORT}
        newest = _by_column(next(iter(rows.pop(STATE).values()), None))
        base = self._base(newest)
        state = self._resting_on(base, newest)
        given_up = newest["base_cells"] or 0 if newest is not None and newest is not state else 0
        if self.bases:
            rows[CARRIED] = self.bases.get(base, {})
        else:
            rows[CARRIED] = {key: (*row[:-1], base) for key, row in rows[CARRIED].items()}
        wanted = state or {}
        cells = wanted.get("base_cells") or max(map(_as_number, rows[CARRIED]), default=-1) + 1
        missing_cells = _missing(rows[CARRIED], 0, cells - 1)
        spoilt = [row for row in self.spoilt if row[-1] in (base, (newest or {}).get("base_input"))]
        harmless = {
            row[0] for row in spoilt if row[-1] == base and row[1] in tags.CELLS and row[1] not in _ISOLATING
        }
        return Salvage(
            rows={table: tuple(found.values()) for table, found in rows.items()},
            numbers=self.numbers,
            state=state,
            base=base,
            cells=given_up + missing_cells,
            isolating=given_up + max(0, missing_cells - len(harmless - rows[CARRIED].keys())),
            inputs=_missing(self.numbers[INPUT], base + 1, wanted.get("last_input")),
            events=_missing(self.numbers[EVENT], wanted.get("oldest_seq"), wanted.get("last_seq")),
            audits=_missing(self.numbers[AUDIT], None, wanted.get("last_audit")),
            doubtful=tuple(_decoded(spoilt)),
        )

    def _base(self, state: Mapping[str, Any] | None) -> int:
        """That of the state, or where all its cells are lost another. A log that was cut short may hold cells
        of one that never came to be.
        """
        if state is not None and (
            state["base_input"] in self.bases or not self.bases or state["base_cells"] == 0
        ):
            return int(state["base_input"])
        return max(self.bases, default=0)

    def _resting_on(self, base: int, newest: dict[str, Any] | None) -> dict[str, Any] | None:
        """The newest state, on this base; where no state names it, its number is all that is known."""
        if newest is None or newest["base_input"] == base:
            return newest
        then = _by_column(self.states.get(base)) or {"base_seq": 0, "base_ns": 0, "base_cells": None}
        of_base = {column: then[column] for column in ("base_seq", "base_ns", "base_cells")}
        return {**newest, "base_input": base, **of_base}


_ISOLATING: Final = frozenset(map(tags.OF_CELLS.__getitem__, (Hold, Promotion, Condition)))
_LATER_COLUMNS: Final[Mapping[Table, int]] = {STATE: 1, CARRIED: 1}
"""How many columns came with the checksums; they are NULL in rows from before."""

_DECODERS: Final[Mapping[Table, Callable[[Any], object]]] = {
    INPUT: lambda row: codec.decode_input(row[3], row[4]),
    CARRIED: lambda row: codec.decode_cells((row,)),
    EVENT: lambda row: row[-1] == EMPTIED or codec.decode_event(row),
}

_AGES: Final[Mapping[Table, Callable[[Row], Any]]] = {
    STATE: lambda row: row[STATE.columns.index("last_seq") : STATE.columns.index("oldest_seq")],
    CONSUMER: lambda row: row[CONSUMER.columns.index("seq")],
    CURSOR: lambda row: row[CURSOR.columns.index("seq")],
}
"""What grows each time that a row is written again, for the tables where that happens."""


def _is_decodable(table: Table, row: Row) -> bool:
    try:
        _DECODERS.get(table, id)(row)
    except StoreDamagedError:
        return False
    return True


def _decoded(cells: Iterable[Any]) -> Iterator[Carried]:
    for row in cells:
        if _is_decodable(CARRIED, row):
            yield from codec.decode_cells((row,))


def _keep_newer(rows: Rows, table: Table, row: Row) -> None:
    """If nothing shows which is newer, it is the one further on in the file: the log follows the file."""
    known, age = rows.get(row[0]), _AGES.get(table)
    if known is None or age is None or age(row) >= age(known):
        rows[row[0]] = row


def _by_column(state: Row | None) -> dict[str, Any] | None:
    return None if state is None else dict(zip(STATE.columns, state, strict=True))


def _as_number(value: SqlValue) -> int:
    return value if isinstance(value, int) else 0


def _missing(there: Collection[SqlValue], first: int | None, last: int | None) -> int:
    """How many numbers from the first to the last are not there; None: the least, or the greatest."""
    numbers = [number for number in there if isinstance(number, int)]
    first = min(numbers, default=1) if first is None else first
    last = max(numbers, default=first - 1) if last is None else last
    return max(0, last - first + 1) - sum(first <= number <= last for number in numbers)
