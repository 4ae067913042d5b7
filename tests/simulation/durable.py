"""What survives a crash: a log in memory that stands for the database, with its points of failure.

It keeps bytes, by the codec that the store really uses, so what a restart reads is what a disk would
give. Only where it can break matters here; how a disk does is tested with the real store.
"""

import hashlib
from collections.abc import Sequence

from nodeagent.core.model import Carried
from nodeagent.store import codec
from nodeagent.store.codec import CellRow, EventRow, InputRow
from nodeagent.store.event_feed import EventFeed
from nodeagent.store.records import (
    ClockAnchor,
    Committed,
    Damage,
    Publication,
    StoredEvent,
    StoreId,
    StoreRecovery,
    Transaction,
)

STORE = StoreId(uuid="simulated", epoch=1)

CRASH_POINTS = (
    "before the write",
    "between write and publish",
    "after publish",
    "before compaction",
    "after compaction",
    "after the rebuild",
)


class Killed(Exception):
    """The process is gone; str() is the point where."""


class DurableLog:
    """In place of the ledger: the part of its interface that pump and rebuild use.

    ``armed`` names the point at which the process is to die next, "" for none. While ``degraded`` nothing
    gets to the disk: what waits for it is written once it is well again, or is gone with the process.
    """

    def __init__(self) -> None:
        self.inputs: list[InputRow] = []
        self.events: list[EventRow] = []
        self.cells: list[CellRow] = []
        self.armed = ""
        self.degraded = ""
        self.earlier_life_waits = False
        self.damages: tuple[Damage, ...] = ()
        self.engine_now_ns = 0
        self.anchor: ClockAnchor | None = None
        self._base_input = 0
        self._base_seq = 0
        self._base_ns = 0
        self._waiting: list[Transaction] = []
        self._bytes = hashlib.sha256()

    @property
    def last_seq(self) -> int:
        return len(self.events)

    @property
    def inputs_since_base(self) -> int:
        return len(self.inputs) - self._base_input

    @property
    def digest(self) -> str:
        """Of every byte ever written."""
        return self._bytes.hexdigest()

    def die_at(self, point: str) -> None:
        """Where the process was to die here, it does."""
        if self.armed == point:
            self.armed = ""
            raise Killed(point)

    async def commit(self, transaction: Transaction) -> Committed:
        self.die_at("before the write")
        self._waiting.append(transaction)
        if self.degraded:
            numbered = _numbered(self.last_seq, self._waiting)
            mine = numbered[len(numbered) - len(transaction.events) :]
            last_seq = self.last_seq + len(numbered)
            return Committed(store_id=STORE, events=mine, last_seq=last_seq, durable=False)
        stored = _numbered(self.last_seq, self._waiting)
        for one in self._waiting:
            self._write(one)
        self._waiting.clear()
        for event in stored:
            self.events.append((event.seq, event.wall_ns, codec.encode_event(event.event)))
            self._note(self.events[-1])
        self.written(stored)
        self.die_at("between write and publish")
        mine = stored[len(stored) - len(transaction.events) :]
        return Committed(store_id=STORE, events=mine, last_seq=self.last_seq, durable=True)

    def lose(self) -> None:
        """The process is gone, and with it what waited."""
        self._waiting.clear()

    def _write(self, transaction: Transaction) -> None:
        for number, stamped in enumerate(transaction.inputs, len(self.inputs) + 1):
            self.inputs.append((number, stamped.rule_ns, stamped.wall_ns, *codec.encode_input(stamped.input)))
            self._note(self.inputs[-1])
        self.engine_now_ns = max(self.engine_now_ns, transaction.engine_now_ns)
        self.anchor = transaction.anchor or self.anchor

    def written(self, stored: tuple[StoredEvent, ...]) -> None:
        """A transaction is on the disk: for who watches."""

    async def compact(
        self, carried: Sequence[Carried], engine_now_ns: int, anchor: ClockAnchor | None = None
    ) -> bool:
        self.die_at("before compaction")
        self.engine_now_ns = max(self.engine_now_ns, engine_now_ns)
        self.anchor = anchor or self.anchor
        self.cells = codec.encode_cells(carried, len(self.inputs))
        self._base_input, self._base_seq, self._base_ns = (
            len(self.inputs),
            len(self.events),
            self.engine_now_ns,
        )
        for row in self.cells:
            self._note(row)
        self.rests_on_base()
        self.die_at("after compaction")
        return True

    def rests_on_base(self) -> None:
        """A compaction is on the disk: for who watches."""

    async def read_events(self, after_seq: int, limit: int) -> list[StoredEvent]:
        return [codec.decode_event(row) for row in self.events[after_seq : after_seq + limit]]

    def recovery(self) -> StoreRecovery:
        """What the next life finds."""
        return StoreRecovery(
            store_id=STORE,
            last_seq=self.last_seq,
            engine_now_ns=self.engine_now_ns,
            anchor=self.anchor,
            cursors={},
            carried=codec.decode_cells(self.cells),
            carried_at_seq=self._base_seq,
            carried_at_ns=self._base_ns,
            inputs=codec.decode_inputs(self.inputs[self._base_input :]),
        )

    def _note(self, row: Sequence[int | str | bytes]) -> None:
        self._bytes.update(repr(row).encode())


def _numbered(last_seq: int, transactions: Sequence[Transaction]) -> tuple[StoredEvent, ...]:
    every = (event for one in transactions for event in one.events)
    return tuple(
        StoredEvent(seq=seq, wall_ns=wall_ns, event=event)
        for seq, (wall_ns, event) in enumerate(every, last_seq + 1)
    )


class MortalFeed(EventFeed):
    """The real event feed, behind which the process may die."""

    def __init__(self, log: DurableLog) -> None:
        super().__init__()
        self._log = log

    def publish(self, publication: Publication, events: tuple[StoredEvent, ...] = ()) -> None:
        super().publish(publication, events)
        self.published(publication, events)
        self._log.die_at("after publish")

    def published(self, publication: Publication, events: tuple[StoredEvent, ...]) -> None:
        """Something became visible: for who watches."""
