"""The stream of one subscriber: snapshot, resume, batches, bookmarks. Knows protobuf, not gRPC.

It keeps a number, never a queue: events are read by number from the board's ring, and older ones from
the ledger, when the subscriber is ready for them. A slow subscriber costs no memory.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from nodeagent.core.model import Source, View
from nodeagent.outlets import messages, messages_of_actions
from nodeagent.outlets.filters import Filter
from nodeagent.outlets.frames import Frames
from nodeagent.outlets.pb import fault_service_pb2 as pb
from nodeagent.outlets.refusal import Refusal, Status
from nodeagent.store.board import Board
from nodeagent.store.errors import StoreDamagedError, StoreUnreadableError
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import Publication, StoredEvent, StoreId

MAX_BATCH = 64
SCAN_EVENTS = 1000
"""How many events are looked at at once; this bounds what a slow subscriber keeps alive."""

HELD_BACK_EVENTS = 16 * SCAN_EVENTS
"""After so many events that the filter held back, a stream that is still catching up tells its position."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Everything up to ``seq`` of this store has been seen."""

    store_id: StoreId
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """When a stream without events to send tells how far it has come, seconds."""

    after_held_back_s: float = 1.0
    quiet_s: float = 30.0


Sources = Callable[[View], Sequence[Source]]
"""The sources to show beside a view."""


def of_view(view: View) -> Sequence[Source]:
    return view.sources


class Subscription:
    """One call of Watch. ``position`` is where to continue, None if the subscriber gave none.

    Raises ``Refusal`` for a request out of range, and OUT_OF_RANGE where it may send no Snapshot.
    """

    def __init__(
        self,
        *,
        board: Board,
        ledger: Ledger,
        frames: Frames,
        request: pb.WatchRequest,
        position: Position | None,
        pace: Pace,
        sources: Sources = of_view,
    ) -> None:
        self._board = board
        self._sources = sources
        self._ledger = ledger
        self._frames = frames
        self._asked = position
        self._mode = _mode(request)
        self._filter = Filter(request.filter)
        self._batch = _batch(request)
        self._pace = pace
        self._store_id = StoreId(uuid="", epoch=0)
        self._durable = True
        self._seq = 0
        self._told = 0

    async def responses(self) -> AsyncGenerator[bytes, None]:
        """Serialised WatchResponses, without end."""
        while self._board.current.store_id.uuid == "":
            await self._board.wait_change(self._board.current)
        yield self._opening(self._board.current)
        while True:
            current = self._board.current
            if current.store_id != self._store_id:
                async for response in self._enter_epoch():
                    yield response
            elif current.seq > self._seq:
                events = await self._next(current)
                if events is None:
                    yield self._fallen_behind()
                else:
                    for response in self._batches(events, current):
                        yield response
                    if self._seq - self._told >= HELD_BACK_EVENTS:
                        yield self._bookmark(current)
            elif current.durable != self._durable:
                yield self._bookmark(current)
            elif not await self._wait():
                yield self._bookmark(self._board.current)

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

    def _obstacle(self, asked: Position, current: Publication) -> pb.SnapshotReason | None:
        """Why the stream cannot go on after this position; None if it can."""
        if asked.store_id != current.store_id:
            return pb.SNAPSHOT_REASON_OTHER_STORE
        if asked.seq > current.seq:
            return pb.SNAPSHOT_REASON_FROM_FUTURE
        if asked.seq < current.seq and asked.seq + 1 < self._ledger.oldest_seq:
            return pb.SNAPSHOT_REASON_BEFORE_RETENTION
        return None

    def _why_not(self, obstacle: pb.SnapshotReason, asked: Position, current: Publication) -> str:
        told = {
            pb.SNAPSHOT_REASON_OTHER_STORE: f"store_id {asked.store_id} is not {current.store_id}",
            pb.SNAPSHOT_REASON_FROM_FUTURE: f"after_seq {asked.seq} is beyond the last event {current.seq}",
            pb.SNAPSHOT_REASON_BEFORE_RETENTION: (
                f"event {asked.seq + 1} is no longer kept; the oldest is {self._ledger.oldest_seq}"
            ),
        }
        return f"{told[obstacle]}; ask with snapshot IF_NEEDED or ALWAYS"

    def _continue_from(self, seq: int, current: Publication) -> bytes:
        self._store_id = current.store_id
        self._seq = seq
        if seq == current.seq:
            self._filter.learn(current)
        return self._bookmark(current)

    def _snapshot(self, reason: pb.SnapshotReason, missed_from_seq: int) -> bytes:
        """The whole state as now published; the stream goes on from there."""
        current = self._board.current
        self._filter.learn(current)
        self._store_id, self._durable = current.store_id, current.durable
        self._seq = self._told = current.seq
        scene = messages.Scene(current, self._filter.devices)
        snapshot = pb.Snapshot(
            seq=current.seq,
            reason=reason,
            missed_from_seq=missed_from_seq,
            oldest_seq=self._ledger.oldest_seq,
            at=scene.at(current.view.now_ns),
            catalog_digest=current.view.digest,
            devices=scene.devices(),
            conditions=scene.conditions(),
            promotions=scene.promotions(),
            holds=scene.holds(),
            sources=scene.sources(self._sources(current.view)),
            resets=messages_of_actions.resets(scene),
        )
        return self._frames.snapshot(current.store_id, current.durable, snapshot)

    def _fallen_behind(self) -> bytes:
        if self._mode == pb.SNAPSHOT_MODE_NEVER:
            raise Refusal(
                Status.OUT_OF_RANGE,
                f"read too slowly: event {self._seq + 1} is no longer kept;"
                f" the oldest is {self._ledger.oldest_seq}; ask with snapshot IF_NEEDED or ALWAYS",
            )
        return self._snapshot(pb.SNAPSHOT_REASON_FELL_BEHIND, missed_from_seq=self._seq + 1)

    def _bookmark(self, current: Publication) -> bytes:
        self._durable = current.durable
        self._told = self._seq
        return self._frames.bookmark(self._store_id, current.durable, self._seq)

    async def _enter_epoch(self) -> AsyncIterator[bytes]:
        """First the events not yet sent, under the new id, so that none is skipped; then the Snapshot.

        While they are being sent more may come: between the last look and the Snapshot nothing is awaited.
        """
        missed_from_seq = 0
        while (current := self._board.current).seq != self._seq:
            same_line = current.store_id.uuid == self._store_id.uuid and current.seq > self._seq
            unsent = self._board.recent(self._seq) if same_line else None
            if unsent is None:
                missed_from_seq = self._seq + 1 if same_line else 0
                break
            self._store_id = current.store_id
            for response in self._batches(unsent, current):
                yield response
        yield self._snapshot(pb.SNAPSHOT_REASON_EPOCH_CHANGED, missed_from_seq)

    async def _next(self, current: Publication) -> Sequence[StoredEvent] | None:
        """Some events after the position, at least one; None if the next one is no longer kept."""
        events: Sequence[StoredEvent] | None = self._board.recent(self._seq)
        if events is None:
            try:
                events = await self._ledger.read_events(self._seq, SCAN_EVENTS)
            except (StoreUnreadableError, StoreDamagedError) as error:
                raise Refusal(Status.UNAVAILABLE, f"events after {self._seq}: {error}") from error
        visible = [each for each in events[:SCAN_EVENTS] if each.seq <= current.seq]
        return visible if visible and visible[0].seq == self._seq + 1 else None

    def _batches(self, events: Sequence[StoredEvent], current: Publication) -> list[bytes]:
        passing = [each for each in events if self._filter.passes(each)]
        self._durable = current.durable
        if events:
            self._seq = events[-1].seq
        if passing:
            self._told = passing[-1].seq
        return [
            self._frames.batch(self._store_id, current.durable, passing[start : start + self._batch])
            for start in range(0, len(passing), self._batch)
        ]

    async def _wait(self) -> bool:
        """False when it is time to tell how far the stream has come."""
        held_back = self._told < self._seq
        try:
            async with asyncio.timeout(self._pace.after_held_back_s if held_back else self._pace.quiet_s):
                await self._board.wait_beyond(self._seq, self._store_id)
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
