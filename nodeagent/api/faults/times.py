"""From when until when events are asked for, and which numbers can be of then.

Wall clocks may be set, so that an event with a higher number may have an earlier time. Therefore nothing is
bisected: the store looks through its times, some ten thousand in one read, and only what lies between the
first and the last number that it finds is read as events.
"""

from dataclasses import dataclass
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from nodeagent.api.access.fair_queue import FairQueue
from nodeagent.api.faults.history import History
from nodeagent.api.refusal import Refusal, Status
from nodeagent.messages.pb import fault_service_pb2 as pb

EVER_NS: Final = 2**63 - 1
"""The greatest number that the store can hold: in the year 2262."""

_LOOKED_AT: Final = 20_000
"""Times in one read: ten milliseconds, or a tenth of a second from a slow disk; others wait so long."""


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


async def begun(span: Span, times: Times, history: History, turns: FairQueue, identity: str) -> Span:
    """Without the numbers before the first event that is not too early."""
    after_seq, found = span.after_seq, None
    while times.since_ns > 0 and found is None and after_seq < span.until_seq:
        end = min(after_seq + _LOOKED_AT, span.until_seq)
        async with turns.turn(identity):
            found = await history.first_since(after_seq, end, times.since_ns)
        after_seq = end if found is None else found - 1
    return Span(after_seq=after_seq, until_seq=span.until_seq)


async def ended(span: Span, times: Times, history: History, turns: FairQueue, identity: str) -> Span:
    """Without the numbers after the last event that is not too late."""
    until_seq, found = span.until_seq, None
    while times.until_ns < EVER_NS and found is None and span.after_seq < until_seq:
        begin = max(span.after_seq, until_seq - _LOOKED_AT)
        async with turns.turn(identity):
            found = await history.last_before(begin, until_seq, times.until_ns)
        until_seq = begin if found is None else found
    return Span(after_seq=span.after_seq, until_seq=until_seq)
