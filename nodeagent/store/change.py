"""What one write carries, the SQL that writes it, and the backlog of writes while the disk fails. No I/O.

Everything is numbered or idempotent, so that a change whose outcome is unknown can be written again once it
is known which of its numbers the disk has. The backlog merges changes and drops the oldest beyond its
limits, which it counts. It does not decide when the disk is tried again.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from nodeagent.store.codec import CellRow, EventRow, InputRow
from nodeagent.store.layout import AUDIT, CARRIED, CONSUMER, CURSOR, EVENT, INPUT, Row
from nodeagent.store.records import ClockAnchor, Cursor, StoreId

KEPT_AUDITS = 1_000
KEPT_CATALOGS = 8

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
    """Give the SQL of a change, in an order that needs no deferred constraint; the writer seals the state at
    the end of the transaction.
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


@dataclass(slots=True, kw_only=True)
class WriteBacklog:
    """``event_cap`` and ``input_cap`` bound it; ``dropped_*`` count what was dropped unwritten.

    ``history_from`` is the number after the last hole in the events, 0 if there never was one.
    """

    event_cap: int
    input_cap: int
    events: deque[EventRow] = field(default_factory=deque)
    inputs: deque[InputRow] = field(default_factory=deque)
    audits: deque[AuditRow] = field(default_factory=lambda: deque(maxlen=KEPT_AUDITS))
    catalogs: dict[str, CatalogRow] = field(default_factory=dict)
    consumers: dict[str, ConsumerRow | None] = field(default_factory=dict)
    cursors: dict[str, Cursor] = field(default_factory=dict)
    base: Base | None = None
    engine_now_ns: int = 0
    anchor: ClockAnchor | None = None
    dropped_events: int = 0
    dropped_inputs: int = 0
    additions: int = 0
    history_from: int = 0
    reports_damage: bool = False

    def add(self, change: Change) -> None:
        """Take one change in; the oldest events and inputs beyond the caps are forgotten and counted."""
        self.additions += 1
        self.events.extend(change.events)
        self.inputs.extend(change.inputs)
        self.audits.extend(change.audits)
        for row in change.catalogs:
            self.catalogs.pop(row[0], None)
            self.catalogs[row[0]] = row
        while len(self.catalogs) > KEPT_CATALOGS:
            del self.catalogs[next(iter(self.catalogs))]
        self.consumers.update(change.consumers)
        self.cursors.update(change.cursors)
        self.engine_now_ns = max(self.engine_now_ns, change.engine_now_ns)
        self.anchor = change.anchor or self.anchor
        self.reports_damage = self.reports_damage or change.reports_damage
        if change.base is not None:
            self._rest_on(change.base)
        while len(self.events) > self.event_cap:
            self.history_from = self.events.popleft()[0] + 1
            self.dropped_events += 1
        while len(self.inputs) > self.input_cap:
            self.inputs.popleft()
            self.dropped_inputs += 1

    def needs_base(self, on_disk: Numbers, last_input: int) -> bool:
        """Whether the inputs on the disk and these leave a hole: only fresh cells can begin a replay then."""
        covered = max(on_disk.input, self.base.number if self.base is not None else 0)
        first = self.inputs[0][0] if self.inputs else last_input + 1
        return first > covered + 1

    def missing(self, on_disk: Numbers, store_id: StoreId, last_seq: int) -> Change:
        """Give the changes that the disk does not report to have; events before a hole there are dropped."""
        first_seq = self.events[0][0] if self.events else last_seq + 1
        return Change(
            inputs=[row for row in self.inputs if row[0] > on_disk.input],
            events=[row for row in self.events if row[0] > on_disk.seq],
            audits=[row for row in self.audits if row[0] > on_disk.audit],
            catalogs=list(self.catalogs.values()),
            consumers=dict(self.consumers),
            cursors=dict(self.cursors),
            base=self.base,
            engine_now_ns=self.engine_now_ns,
            anchor=self.anchor,
            store_id=store_id,
            oldest_seq=first_seq if first_seq > on_disk.seq + 1 else 0,
            reports_damage=self.reports_damage,
        )

    def forget(self, written: Change, on_disk: Numbers) -> None:
        """Drop what is on the disk now; what was added since stays."""
        self.history_from = max(self.history_from, written.oldest_seq)
        while self.events and self.events[0][0] <= on_disk.seq:
            self.events.popleft()
        while self.inputs and self.inputs[0][0] <= on_disk.input:
            self.inputs.popleft()
        while self.audits and self.audits[0][0] <= on_disk.audit:
            self.audits.popleft()
        for row in written.catalogs:
            if self.catalogs.get(row[0]) == row:
                del self.catalogs[row[0]]
        for name, consumer in written.consumers.items():
            if name in self.consumers and self.consumers[name] == consumer:
                del self.consumers[name]
        for source, cursor in written.cursors.items():
            if self.cursors.get(source) == cursor:
                del self.cursors[source]
        if self.base is written.base:
            self.base = None
        self.reports_damage = False

    def _rest_on(self, base: Base) -> None:
        self.base = base
        while self.inputs and self.inputs[0][0] <= base.number:
            self.inputs.popleft()
