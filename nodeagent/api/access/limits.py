"""How much of the daemon its clients may use at once: every such number, with its reason.

Each limit has a part that one identity may take (a user on a local socket, a name in a certificate over TCP)
and one for all together, of which some is kept for operators. On the public socket no caller is an operator,
and a user has another part there than on the control socket: whatever anybody does there, root's `status` and
orders find a place on the control socket. `tests/api/access/limits_sum.py` adds up what all of it can hold in
memory.
"""

import errno
import math
from dataclasses import dataclass
from typing import Final

_DAY_S: Final = 24 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """``what`` in the plural, as a refusal names it. ``kept`` of ``total`` are for operators alone.

    ``line`` more of each identity wait until there is room; the next one is refused.
    """

    what: str
    each: int
    total: int
    kept: int
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """A token bucket: ``at_once`` after a while without use, and ``a_second`` for long. Where an amount is
    spent that is not there, at most ``most_owed`` is owed.
    """

    at_once: float
    a_second: float
    most_owed: float = math.inf


def a_second(number: float, *, burst_s: float) -> Bucket:
    """So many a second for long, and those of ``burst_s`` seconds at once."""
    return Bucket(at_once=number * burst_s, a_second=number)


def a_day(number: float, *, at_once: float) -> Bucket:
    """So many a day for long. No more is owed than ``at_once``: it would take days to pay off."""
    return Bucket(at_once=at_once, a_second=number / _DAY_S, most_owed=at_once)


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """What one identity may spend over time, and all together."""

    each: Bucket
    total: Bucket


PUBLIC_CONNECTIONS: Final = Limit(what="connections", each=112, total=224, kept=0)
"""A hundred subscribers of one user, each on its own connection, are served. None are kept for operators, who
have the control socket.
"""

CONTROL_CONNECTIONS: Final = Limit(what="connections", each=32, total=64, kept=16)
"""All who became root count as one. Their commands come and go: the oldest connection that is idle makes way,
so that a script that leaks connections does not lock the next operator out.
"""

TCP_CONNECTIONS: Final = Limit(what="connections", each=32, total=96, kept=16)
"""Counted by address. A caller is not known before its first call, so all places are open until then: a
connection of a reader beyond the limit ends, and of those without a call the oldest ends for the next one.
"""

NODE_HEALTH_CONNECTIONS: Final = Limit(what="connections", each=8, total=16, kept=0)
"""NVRx opens one for each launcher, until its call ends. One that is refused goes on without it."""

NODE_HEALTH_CALLS_ON_CONNECTION: Final = 2
NODE_HEALTH_REQUEST_BYTES: Final = 4 * 1024
"""Its one request holds a few words, which mean nothing here."""

STREAMS: Final = Limit(what="streams", each=128, total=512, kept=64)
"""Watch, health and reflection together."""

CALLS: Final = Limit(what="calls", each=16, total=48, kept=16, line=112)
"""Calls that answer once and are being answered. Each takes milliseconds, so that few are ever under way.
Those that wait have not been read yet, and cost next to nothing.
"""

OPEN_CALLS: Final = Limit(what="calls and streams", each=384, total=1024, kept=192)
"""All there are: being answered, in line, and refused but with the refusal unread. A connection that goes
beyond ends, since a refusal that is not read costs as much as an answer.
"""

ANSWER_BYTES: Final = Limit(what="bytes of answers", each=4 << 20, total=16 << 20, kept=4 << 20, line=256)
"""Answers and snapshots that were made and not yet taken: gRPC keeps them for as long as the client likes.

A snapshot of a node with sixteen chips has 20 KiB. One that needs more than its part is made where its caller
has no other waiting. All calls and streams of an identity fit in the line.
"""

SMALL_ANSWER_BYTES: Final = 64 * 1024
"""Needs no room: an order does not wait because its caller has not read earlier answers."""

MAX_BATCH_BYTES: Final = 32 * 1024
"""The events in one response of a stream, which then takes no more: 64 events of the usual size."""

MAX_FILTER_DEVICES: Final = 256
MAX_FILTER_CODES: Final = 100
MAX_NAME_LENGTH: Final = 256
"""A stream keeps its filter for as long as it lasts."""

MAX_LISTED_BYTES: Final = 512 * 1024
"""The events in one answer: a thousand events of the usual size. A larger one goes alone."""

CALL_RATE: Final = RateLimit(each=a_second(200, burst_s=2.0), total=a_second(500, burst_s=2.0))
"""Calls and streams that readers begin, root on the public socket too: 500 a second take about a third of a
core. A faster caller is not read from until it has paid that off.
"""

MAX_REST_S: Final = 2.0
"""Shorter than the time after which a peer that does not answer is given up."""

CONNECTION_RATE: Final = RateLimit(each=a_second(50, burst_s=5.0), total=a_second(1000, burst_s=5.0))
"""A command makes two; 64 that begin at once are no problem. A faster client is refused."""

REFUSED_PAUSE_S: Final = 0.002
"""No connection is accepted for so long after a refusal: a client that only connects takes little time."""

_OUT_OF_RESOURCES: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_OUT_OF_RESOURCES_PAUSE_S: Final = 1.0
"""Until more is tried where there are no descriptors or no memory; others free some, or nothing helps."""

IDENTITIES_KNOWN: Final = 1024
"""Beyond so many, those are forgotten that did nothing of late."""

MAX_REQUEST_BYTES: Final = 256 * 1024
"""The largest request is 1,024 claims, about 120 KiB."""

REQUEST_LIMIT_S: Final = 10.0
"""How long a call may be without its request: until then it takes a place."""

ANSWER_LIMIT_S: Final = 30.0
"""How long an answer may be taken: a client that is alive takes milliseconds. Streams may wait for ever."""

HANDSHAKE_LIMIT_S: Final = 5.0
"""From a connection to the end of TLS and HTTP/2 settings."""

PENDING_CALLS: Final = 256
"""That gRPC keeps until the daemon takes them, for each socket; beyond so many it ends some by itself, with
CANCELLED, and from twice as many on all.
"""

STREAMS_ON_CONNECTION: Final = 128
"""All streams that one identity may have fit on one connection: clients share connections."""


def pause_s(failure: OSError) -> float:
    """How long no connection is accepted after accept(2) has failed."""
    return _OUT_OF_RESOURCES_PAUSE_S if failure.errno in _OUT_OF_RESOURCES else REFUSED_PAUSE_S
