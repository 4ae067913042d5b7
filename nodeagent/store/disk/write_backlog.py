"""What was taken while the disk was in trouble: a bounded memory of changes, to be written later.

It merges changes and forgets the oldest beyond its caps, counting them. It does no I/O, and it does
not decide when the disk is to be tried.
"""

from collections import deque
from dataclasses import dataclass, field

from nodeagent.store.change import AuditRow, Base, CatalogRow, Change, ConsumerRow, Numbers
from nodeagent.store.codec import EventRow, InputRow
from nodeagent.store.records import ClockAnchor, Cursor, StoreId

KEPT_AUDITS = 1_000
KEPT_CATALOGS = 8


@dataclass(slots=True, kw_only=True)
class WriteBacklog:
    """``event_cap`` and ``input_cap`` bound it; ``dropped_*`` count what fell out unwritten.

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
        """Give what the disk has not, by its own word; events before a hole there are let go."""
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
        """Let go of what is on the disk now; what was added since stays."""
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
