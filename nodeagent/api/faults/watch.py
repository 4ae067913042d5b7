"""The stream of one subscriber: snapshot, resume, batches, bookmarks. Knows protobuf, not gRPC.

It keeps a number, never a queue: each response is made when the one before it was taken, from events that are
read by number. While a subscriber takes nothing, its stream holds that one response, and neither events nor a
view: a slow subscriber costs little memory.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from nodeagent.api import messages
from nodeagent.api.access.limits import MAX_BATCH_BYTES
from nodeagent.api.access.quota import FairQueue, LimitedCaller, Quota
from nodeagent.api.faults.filters import Filter
from nodeagent.api.faults.frames import Frames
from nodeagent.api.faults.history import PAGE_EVENTS, EventHistory
from nodeagent.api.messages import jobs, resets
from nodeagent.api.refusal import Refusal, Status
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.store.event_feed import EventFeed
from nodeagent.store.records import Publication, StoredEvent, StoreId

MAX_BATCH = 64
HELD_BACK_EVENTS = 16_000
"""After so many events that the filter held back, a stream that is still catching up sends its position."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPosition:
    """Everything up to ``seq`` of this store has been seen."""

    store_id: StoreId
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPace:
    """When a stream without events to send reports how far it has come, seconds."""

    after_held_back_s: float = 1.0
    quiet_s: float = 30.0


class StreamState(Enum):
    """Where a stream is. It follows the events by number, except:"""

    OPENING = auto()
    """Its first response is not sent."""

    FOLLOWING = auto()
    ENTERING = auto()
    """The store id has changed. The rest of the events is sent under the new one, then a Snapshot."""

    BEHIND = auto()
    """The next event is no longer kept. A Snapshot is due."""


class StreamTrigger(Enum):
    """What can happen to a stream."""

    POSITION_SENT = auto()
    """The opening response was a position, not a Snapshot."""

    SNAPSHOT_SENT = auto()
    STORE_CHANGED = auto()
    EVENT_LOST = auto()
    """Events were read, and the next one was not among them."""


_S, _T = StreamState, StreamTrigger
TRANSITIONS: Final[Mapping[tuple[StreamState, StreamTrigger], StreamState]] = {
    (_S.OPENING, _T.POSITION_SENT): _S.FOLLOWING,
    (_S.OPENING, _T.SNAPSHOT_SENT): _S.FOLLOWING,
    (_S.FOLLOWING, _T.STORE_CHANGED): _S.ENTERING,
    (_S.FOLLOWING, _T.EVENT_LOST): _S.BEHIND,
    (_S.ENTERING, _T.STORE_CHANGED): _S.ENTERING,
    (_S.ENTERING, _T.EVENT_LOST): _S.ENTERING,
    (_S.ENTERING, _T.SNAPSHOT_SENT): _S.FOLLOWING,
    (_S.BEHIND, _T.STORE_CHANGED): _S.ENTERING,
    (_S.BEHIND, _T.SNAPSHOT_SENT): _S.FOLLOWING,
}
"""What is missing here cannot happen, and would be a defect: it raises KeyError."""


class _Due(Enum):
    """What a stream sends next."""

    EVENTS = auto()
    SNAPSHOT = auto()
    BOOKMARK = auto()


class Subscription:
    """One call of Watch. ``position`` is where to continue, None if the subscriber gave none.

    Raises ``Refusal`` for a request out of range, and OUT_OF_RANGE where it may send no Snapshot.
    """

    def __init__(
        self,
        *,
        feed: EventFeed,
        history: EventHistory,
        turns: FairQueue,
        frames: Frames,
        answers: Quota,
        caller: LimitedCaller,
        request: pb.WatchRequest,
        position: StreamPosition | None,
        pace: StreamPace,
    ) -> None:
        self._feed = feed
        self._history = history
        self._turns = turns
        self._frames = frames
        self._answers = answers
        self._caller = caller
        self._asked = position
        self._mode = _mode(request)
        self._filter = Filter(request.filter)
        self._batch = _batch(request)
        self._pace = pace
        self._store_id = StoreId(uuid="", epoch=0)
        self._durable = True
        self._seq = 0
        self._sent_seq = 0
        self._state = StreamState.OPENING

    async def responses(self) -> AsyncGenerator[bytes, None]:
        """Serialised WatchResponses, without end. Each is made when the one before it was taken."""
        while self._feed.current.store_id.uuid == "":
            await self._feed.wait_change(self._feed.current)
        async with self._room_for_snapshot():
            yield self._opening(self._feed.current)
        while True:
            due = await self._due()
            if due is _Due.SNAPSHOT:
                async with self._room_for_snapshot():
                    yield self._snapshot_due()
            elif due is _Due.BOOKMARK:
                yield self._bookmark(self._feed.current)
            elif batch := await self._batch_due():
                yield batch

    def _room_for_snapshot(self) -> AbstractAsyncContextManager[None]:
        return self._answers.held(self._caller, self._frames.snapshot_size)

    async def _due(self) -> _Due:
        """What the stream sends next; waits until there is something."""
        while True:
            current = self._feed.current
            self._look_at_store(current)
            if self._state is StreamState.ENTERING:
                return _Due.EVENTS if self._unsent(current) else _Due.SNAPSHOT
            if self._state is StreamState.BEHIND:
                return _Due.SNAPSHOT
            if current.seq > self._seq:
                return _Due.EVENTS
            if current.durable != self._durable or not await self._wait():
                return _Due.BOOKMARK

    def _opening(self, current: Publication) -> bytes:
        asked = self._asked
        if asked is None:
            if self._mode == pb.SNAPSHOT_MODE_NEVER:
                return self._continue_from(current.seq, current)
            always = self._mode == pb.SNAPSHOT_MODE_ALWAYS
            return self._snapshot(
                pb.SNAPSHOT_REASON_REQUESTED if always else pb.SNAPSHOT_REASON_NO_POSITION, missed_from_seq=0
            )
        obstacle = self._obstacle(asked, current)
        if obstacle is None and self._mode != pb.SNAPSHOT_MODE_ALWAYS:
            return self._continue_from(asked.seq, current)
        if obstacle is not None and self._mode == pb.SNAPSHOT_MODE_NEVER:
            raise Refusal(Status.OUT_OF_RANGE, self._why_not(obstacle, asked, current))
        follows = obstacle in (None, pb.SNAPSHOT_REASON_BEFORE_RETENTION) and asked.seq < current.seq
        return self._snapshot(
            obstacle or pb.SNAPSHOT_REASON_REQUESTED, missed_from_seq=asked.seq + 1 if follows else 0
        )

    def _obstacle(self, asked: StreamPosition, current: Publication) -> pb.SnapshotReason | None:
        """Why the stream cannot continue after this position; None if it can."""
        if asked.store_id != current.store_id:
            return pb.SNAPSHOT_REASON_OTHER_STORE
        if asked.seq > current.seq:
            return pb.SNAPSHOT_REASON_FROM_FUTURE
        if asked.seq < current.seq and asked.seq + 1 < self._history.oldest_seq:
            return pb.SNAPSHOT_REASON_BEFORE_RETENTION
        return None

    def _why_not(self, obstacle: pb.SnapshotReason, asked: StreamPosition, current: Publication) -> str:
        reasons = {
            pb.SNAPSHOT_REASON_OTHER_STORE: f"store_id {asked.store_id} is not {current.store_id}",
            pb.SNAPSHOT_REASON_FROM_FUTURE: f"after_seq {asked.seq} is beyond the last event {current.seq}",
            pb.SNAPSHOT_REASON_BEFORE_RETENTION: (
                f"event {asked.seq + 1} is no longer kept; the oldest is {self._history.oldest_seq}"
            ),
        }
        return f"{reasons[obstacle]}; ask with snapshot IF_NEEDED or ALWAYS"

    def _continue_from(self, seq: int, current: Publication) -> bytes:
        self._take(StreamTrigger.POSITION_SENT)
        self._store_id = current.store_id
        self._seq = seq
        if seq == current.seq:
            self._filter.learn(current)
        return self._bookmark(current)

    def _snapshot(self, reason: pb.SnapshotReason, missed_from_seq: int) -> bytes:
        """The whole state as now published; the stream continues from there."""
        current = self._feed.current
        self._filter.learn(current)
        self._store_id, self._durable = current.store_id, current.durable
        self._seq = self._sent_seq = current.seq
        self._take(StreamTrigger.SNAPSHOT_SENT)
        published = messages.Published(current, self._filter.devices)
        snapshot = pb.Snapshot(
            seq=current.seq,
            reason=reason,
            missed_from_seq=missed_from_seq,
            oldest_seq=self._history.oldest_seq,
            at=published.at(current.view.now_ns),
            catalog_digest=current.view.digest,
            devices=published.devices(),
            conditions=published.conditions(),
            promotions=published.promotions(),
            holds=published.holds(),
            sources=published.sources(),
            resets=resets(published),
            jobs=jobs(published),
        )
        return self._frames.snapshot(current.store_id, current.durable, snapshot)

    def _fallen_behind(self) -> bytes:
        if self._mode == pb.SNAPSHOT_MODE_NEVER:
            raise Refusal(
                Status.OUT_OF_RANGE,
                f"read too slowly: event {self._seq + 1} is no longer kept;"
                f" the oldest is {self._history.oldest_seq}; ask with snapshot IF_NEEDED or ALWAYS",
            )
        return self._snapshot(pb.SNAPSHOT_REASON_FELL_BEHIND, missed_from_seq=self._seq + 1)

    def _bookmark(self, current: Publication) -> bytes:
        self._durable = current.durable
        self._sent_seq = self._seq
        return self._frames.bookmark(self._store_id, current.durable, self._seq)

    def _take(self, trigger: StreamTrigger) -> None:
        self._state = TRANSITIONS[self._state, trigger]

    def _look_at_store(self, current: Publication) -> None:
        if current.store_id != self._store_id:
            self._take(StreamTrigger.STORE_CHANGED)

    def _unsent(self, current: Publication) -> Sequence[StoredEvent] | None:
        """Events not yet sent that were made on the same line of numbers; None: the next one is lost."""
        if current.store_id.uuid != self._store_id.uuid or current.seq <= self._seq:
            return ()
        return self._feed.recent(self._seq, PAGE_EVENTS)

    async def _batch_due(self) -> bytes:
        """The next events that pass; "" where none of those looked at does, or the next one is lost."""
        current = self._feed.current
        self._look_at_store(current)
        if self._state is StreamState.ENTERING:
            return self._batch_entering(self._unsent(current) or (), current)
        recent = self._feed.recent(self._seq, PAGE_EVENTS)
        if recent is not None:
            return self._batch_of(recent, current)
        async with self._turns.turn(self._caller.counted_as):
            return self._batch_of(await self._history.read(self._seq), current)

    def _batch_entering(self, unsent: Sequence[StoredEvent], current: Publication) -> bytes:
        """They are sent under the new id before its Snapshot, so that none is skipped."""
        self._store_id = current.store_id
        return self._batch_of(unsent, current)

    def _snapshot_due(self) -> bytes:
        """Or events that were published meanwhile: from the last look to the Snapshot nothing is awaited."""
        current = self._feed.current
        self._look_at_store(current)
        if self._state is StreamState.BEHIND:
            return self._fallen_behind()
        while unsent := self._unsent(current):
            if batch := self._batch_entering(unsent, current):
                return batch
        missed_from_seq = self._seq + 1 if unsent is None else 0
        return self._snapshot(pb.SNAPSHOT_REASON_EPOCH_CHANGED, missed_from_seq)

    def _batch_of(self, events: Sequence[StoredEvent], current: Publication) -> bytes:
        """The next ones that pass, as many as one response holds; the position is then after the last one."""
        passing: list[bytes] = []
        size = 0
        if not events or events[0].seq != self._seq + 1:
            self._take(StreamTrigger.EVENT_LOST)
        for stored in events:
            if stored.seq != self._seq + 1 or len(passing) == self._batch or size > MAX_BATCH_BYTES:
                break
            if self._filter.passes(stored):
                passing.append(self._frames.event(stored))
                size += len(passing[-1])
                self._sent_seq = stored.seq
            self._seq = stored.seq
        self._durable = current.durable
        if passing:
            return self._frames.batch(self._store_id, current.durable, passing)
        return self._bookmark(current) if self._seq - self._sent_seq >= HELD_BACK_EVENTS else b""

    async def _wait(self) -> bool:
        """False when it is time to report how far the stream has come."""
        held_back = self._sent_seq < self._seq
        try:
            async with asyncio.timeout(self._pace.after_held_back_s if held_back else self._pace.quiet_s):
                await self._feed.wait_beyond(self._seq, self._store_id)
        except TimeoutError:
            return False
        return True


def _mode(request: pb.WatchRequest) -> pb.SnapshotMode:
    if request.snapshot not in pb.SnapshotMode.values():
        raise Refusal(
            Status.INVALID_ARGUMENT, f"snapshot: {request.snapshot} is not a SnapshotMode of nodeagent.v1"
        )
    return request.snapshot


def _batch(request: pb.WatchRequest) -> int:
    if request.batch > MAX_BATCH:
        raise Refusal(Status.INVALID_ARGUMENT, f"batch: {request.batch}; it must be 1 to {MAX_BATCH}, or 0")
    return request.batch or MAX_BATCH
