"""ListEvents: reads stored events page by page and answers with those that pass the filter.

It keeps the bytes of the events that it found, up to a number and a size, and nothing of the others: a
filter that nothing passes costs turns and no memory.

Wall clocks may be set, so an event with a higher number may have an earlier time. Therefore nothing is
bisected: the store scans its times, some ten thousand in one read, and only the events between the first and
the last number that it finds are read.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from nodeagent.api.access.limits import MAX_LISTED_BYTES
from nodeagent.api.access.quota import FairQueue
from nodeagent.api.faults.filters import Filter
from nodeagent.api.faults.frames import Frames
from nodeagent.api.faults.history import EventHistory
from nodeagent.api.refusal import Refusal, Status
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.store.records import StoredEvent

DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1000
MAX_SCANNED: Final = 20_000
"""One call looks at about so many events; a filter that passes little gives a short answer with ``more``."""

EVER_NS: Final = 2**63 - 1
"""The greatest number that the store can hold: in the year 2262."""

_LOOKED_AT: Final = 20_000
"""Times in one read: ten milliseconds, or a tenth of a second from a slow disk; others wait so long."""

_WINDOW_EVENTS: Final = 1024
"""Newest events are looked for so many at a time, backwards. A filter forgets what it knew before each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """At ``since_ns`` or later, and before ``until_ns``, by the wall clock."""

    since_ns: int = 0
    until_ns: int = EVER_NS

    def contain(self, wall_ns: int) -> bool:
        return self.since_ns <= wall_ns < self.until_ns


ALWAYS: Final = Times()


def times_of(request: pb.ListEventsRequest) -> Times:
    """Refuses what has no moment in it."""
    since_ns = _moment_ns(request.since) if request.HasField("since") else 0
    until_ns = _moment_ns(request.until) if request.HasField("until") else EVER_NS
    if since_ns >= until_ns:
        raise Refusal(Status.INVALID_ARGUMENT, "since: it must be before until")
    return Times(since_ns=since_ns, until_ns=until_ns)


def _moment_ns(stamp: Timestamp) -> int:
    return min(max(0, stamp.seconds * 10**9 + stamp.nanos), EVER_NS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Numbers after ``after_seq``, up to ``until_seq``."""

    after_seq: int
    until_seq: int


async def begun(span: Span, times: Times, history: EventHistory, turns: FairQueue, identity: str) -> Span:
    """Without the numbers before the first event that is not too early."""
    after_seq, found = span.after_seq, None
    while times.since_ns > 0 and found is None and after_seq < span.until_seq:
        end = min(after_seq + _LOOKED_AT, span.until_seq)
        async with turns.turn(identity):
            found = await history.first_since(after_seq, end, times.since_ns)
        after_seq = end if found is None else found - 1
    return Span(after_seq=after_seq, until_seq=span.until_seq)


async def ended(span: Span, times: Times, history: EventHistory, turns: FairQueue, identity: str) -> Span:
    """Without the numbers after the last event that is not too late."""
    until_seq, found = span.until_seq, None
    while times.until_ns < EVER_NS and found is None and span.after_seq < until_seq:
        begin = max(span.after_seq, until_seq - _LOOKED_AT)
        async with turns.turn(identity):
            found = await history.last_before(begin, until_seq, times.until_ns)
        until_seq = begin if found is None else found
    return Span(after_seq=span.after_seq, until_seq=until_seq)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """``events`` are serialised, oldest first; ``more`` is to be looked at after ``next_after_seq``."""

    events: tuple[bytes, ...]
    next_after_seq: int
    more: bool


def limit_of(asked: int) -> int:
    """What a request's limit means. Refuses one beyond ``MAX_LIMIT``."""
    if asked > MAX_LIMIT:
        raise Refusal(Status.INVALID_ARGUMENT, f"limit: {asked}; it must be 1 to {MAX_LIMIT}, or 0")
    return asked or DEFAULT_LIMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What one call of ``identity`` looks for: at most ``limit`` ``wanted`` events of these times."""

    history: EventHistory
    frames: Frames
    turns: FairQueue
    identity: str
    wanted: Filter
    limit: int
    after_seq: int
    times: Times = ALWAYS

    async def oldest(self) -> Listing:
        """The first ones. Where they end is only looked for once all of a page is of other times: while pages
        are full, a caller that asks for one page after the other would have it looked for each time.
        """
        found = _Found(self.limit)
        span = await self._begun()
        position, scanned, is_ended = span.after_seq, 0, not self._narrows
        while scanned < MAX_SCANNED and not found.is_full and (self._is_open or position < span.until_seq):
            async with self.turns.turn(self.identity):
                events = await self.history.read(position)
                position = self._take(events, found, position)
            if not events:
                return Listing(events=found.events, next_after_seq=position, more=False)
            scanned += len(events)
            if not is_ended and not any(self.times.contain(each.wall_ns) for each in events):
                span, is_ended = await self._ended(replace(span, after_seq=position)), True
        last_seq = self.history.last_seq if self._is_open else span.until_seq
        return Listing(events=found.events, next_after_seq=position, more=position < last_seq)

    @property
    def _is_open(self) -> bool:
        """Whether what comes while it looks is asked for too."""
        return self.times.until_ns == EVER_NS

    @property
    def _narrows(self) -> bool:
        """What memory has while the disk fails is little: all of it is looked at."""
        return self.times != ALWAYS and self.history.durable

    async def _begun(self) -> Span:
        """The span of all numbers, without those before what is asked for."""
        last_seq = self.history.last_seq
        if not self._narrows:
            return Span(after_seq=self.after_seq, until_seq=last_seq)
        kept = Span(after_seq=max(self.after_seq, self.history.oldest_seq - 1), until_seq=last_seq)
        return await begun(kept, self.times, self.history, self.turns, self.identity)

    async def _ended(self, span: Span) -> Span:
        """The span without the numbers after it."""
        if not self._narrows:
            return span
        return await ended(span, self.times, self.history, self.turns, self.identity)

    def _passes(self, stored: StoredEvent) -> bool:
        """The filter sees every event, also those of other times."""
        return self.wanted.passes(stored) and self.times.contain(stored.wall_ns)

    def _take(self, events: Sequence[StoredEvent], found: "_Found", position: int) -> int:
        """What passes, until it is full; the answer is how far it has looked."""
        for stored in events:
            if found.is_full or (self._passes(stored) and not found.add(self.frames.event(stored))):
                break
            position = stored.seq
        return position

    async def newest(self) -> Listing:
        """The newest events of the span."""
        span = await self._ended(await self._begun())
        last_seq = begin = span.until_seq
        floor = max(span.after_seq, self.history.oldest_seq - 1, last_seq - MAX_SCANNED)
        found = _Found(self.limit)
        while begin > floor and not found.is_full:
            end, begin = begin, max(floor, begin - _WINDOW_EVENTS)
            for event in reversed(await self._passing(begin, end)):
                if not found.add(event):
                    break
        return Listing(events=found.events[::-1], next_after_seq=last_seq, more=False)

    async def _passing(self, after_seq: int, until_seq: int) -> Sequence[bytes]:
        """The last ones of these that pass, as many as an answer may hold."""
        self.wanted.forget()
        passing: deque[bytes] = deque()
        size, position = 0, after_seq
        while position < until_seq:
            async with self.turns.turn(self.identity):
                events = await self.history.read(position)
                for stored in events:
                    position = stored.seq
                    if position <= until_seq and self._passes(stored):
                        passing.append(self.frames.event(stored))
                        size += len(passing[-1])
                    while size > MAX_LISTED_BYTES and len(passing) > 1:
                        size -= len(passing.popleft())
            if not events:
                break
        return passing


class _Found:
    """Takes events until there are ``limit`` of them, or ``MAX_LISTED_BYTES``."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._events: list[bytes] = []
        self._size = 0
        self._is_refused = False

    @property
    def events(self) -> tuple[bytes, ...]:
        return tuple(self._events)

    @property
    def is_full(self) -> bool:
        return self._is_refused or len(self._events) == self._limit

    def add(self, event: bytes) -> bool:
        """False where there is no room for it."""
        self._is_refused = self.is_full or (bool(self._events) and self._size + len(event) > MAX_LISTED_BYTES)
        if not self._is_refused:
            self._events.append(event)
            self._size += len(event)
        return not self._is_refused
