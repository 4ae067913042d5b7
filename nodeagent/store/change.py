"""What one write carries, and the SQL that writes it. A value and its statements; no I/O.

Everything is numbered or idempotent, so that a change whose fate is unknown can be written again
once it is known which of its numbers the disk already has.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from nodeagent.store.codec import CellRow, EventRow, InputRow
from nodeagent.store.layout import AUDIT, CARRIED, CONSUMER, CURSOR, EVENT, INPUT, Row
from nodeagent.store.records import ClockAnchor, Cursor, StoreId

Statement = tuple[str, Sequence[Row]]
"""One SQL text and the rows it is executed with."""

CatalogRow = tuple[str, str, bytes]
"""digest, reason, body."""

ConsumerRow = tuple[str, str, int, int]
"""name, owner, seq, acked_wall_ns."""

AuditRow = tuple[int, int, str, str, str, str]
"""number, wall_ns, who, what, target, result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The greatest numbers given so far; each line begins at 1 and has no hole."""

    seq: int = 0
    input: int = 0
    audit: int = 0

    def or_later(self, other: "Numbers") -> "Numbers":
        """The greater one of each line."""
        return Numbers(
            seq=max(self.seq, other.seq),
            input=max(self.input, other.input),
            audit=max(self.audit, other.audit),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """Where a replay begins: the live cells after input ``number`` and event ``seq``, at ``at_ns``."""

    cells: tuple[CellRow, ...]
    number: int
    seq: int
    at_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """All of it in one transaction. Fields left at their default change nothing.

    ``last_*`` are the greatest numbers given so far, ``store_id`` and ``oldest_seq`` replace what is
    stored, ``consumers`` maps a name to its row or to None when it is forgotten. ``reports_damage``: what was
    found damaged is reported with it.
    """

    inputs: Sequence[InputRow] = ()
    events: Sequence[EventRow] = ()
    audits: Sequence[AuditRow] = ()
    catalogs: Sequence[CatalogRow] = ()
    consumers: Mapping[str, ConsumerRow | None] = field(default_factory=dict)
    cursors: Mapping[str, Cursor] = field(default_factory=dict)
    base: Base | None = None
    engine_now_ns: int = 0
    anchor: ClockAnchor | None = None
    store_id: StoreId | None = None
    oldest_seq: int = 0
    reports_damage: bool = False

    @property
    def rows(self) -> int:
        return len(self.inputs) + len(self.events) + len(self.audits)

    @property
    def last(self) -> Numbers:
        """The greatest numbers that it gives; 0 where it gives none."""
        return Numbers(
            seq=self.events[-1][0] if self.events else 0,
            input=self.inputs[-1][0] if self.inputs else 0,
            audit=self.audits[-1][0] if self.audits else 0,
        )


_PUT_CATALOG = """
INSERT INTO catalog (digest, ordinal, reason, body, checksum)
SELECT ?1, next, ?2, ?3, row_checksum('catalog', ?1, next, ?2, ?3)
    FROM (SELECT COALESCE(MAX(ordinal), 0) + 1 AS next FROM catalog) WHERE TRUE
ON CONFLICT (digest) DO UPDATE SET
    ordinal = excluded.ordinal, reason = excluded.reason, body = excluded.body, checksum = excluded.checksum
"""
_ADVANCE = """
UPDATE state SET last_seq = MAX(last_seq, ?), last_input = MAX(last_input, ?),
    last_audit = MAX(last_audit, ?), engine_now_ns = MAX(engine_now_ns, ?)
"""
_ANCHOR = """
UPDATE state SET anchor_boot_id = ?, anchor_boottime_ns = ?, anchor_rule_ns = ?, anchor_wall_ns = ?
"""
_REST_ON_BASE = """
UPDATE state SET base_input = ?1, base_seq = ?2, base_ns = ?3, base_cells = ?4,
    last_input = MAX(last_input, ?1), last_seq = MAX(last_seq, ?2)
"""


def statements(change: Change) -> Iterator[Statement]:
    """Give the SQL of a change, in an order that needs no deferred constraint; the state is sealed by whoever
    ends the transaction.
    """
    for table, rows in ((INPUT, change.inputs), (EVENT, change.events), (AUDIT, change.audits)):
        if rows:
            yield table.insert, [table.sealed(row) for row in rows]
    if change.catalogs:
        yield _PUT_CATALOG, change.catalogs
    yield from _consumer_statements(change)
    if change.cursors:
        cursors = [(name, cursor.boot_id, cursor.seq) for name, cursor in change.cursors.items()]
        yield CURSOR.replace, [CURSOR.sealed(row) for row in cursors]
    if change.reports_damage:
        yield "DELETE FROM damage", [()]
    yield from _state_statements(change)


def _consumer_statements(change: Change) -> Iterator[Statement]:
    kept = [row for row in change.consumers.values() if row is not None]
    if kept:
        yield CONSUMER.replace, [CONSUMER.sealed(row) for row in kept]
    forgotten: list[Row] = [(name,) for name, row in change.consumers.items() if row is None]
    if forgotten:
        yield "DELETE FROM consumer WHERE name = ?", forgotten


def _state_statements(change: Change) -> Iterator[Statement]:
    last = change.last
    yield _ADVANCE, [(last.seq, last.input, last.audit, change.engine_now_ns)]
    if change.anchor is not None:
        anchor = change.anchor
        yield _ANCHOR, [(anchor.boot_id, anchor.boottime_ns, anchor.rule_ns, anchor.wall_ns)]
    if change.base is not None:
        base = change.base
        yield "DELETE FROM carried", [()]
        yield CARRIED.insert, [CARRIED.sealed(cell) for cell in base.cells]
        yield _REST_ON_BASE, [(base.number, base.seq, base.at_ns, len(base.cells))]
    if change.store_id is not None:
        yield "UPDATE state SET uuid = ?, epoch = ?", [(change.store_id.uuid, change.store_id.epoch)]
    if change.oldest_seq:
        yield "UPDATE state SET oldest_seq = MAX(oldest_seq, ?)", [(change.oldest_seq,)]
