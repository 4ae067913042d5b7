"""The three kinds of limits on what clients use: how much at once, how much over time, and whose turn it is.

``Quota`` counts what each identity has at once of connections, calls, streams or bytes: a caller that finds
nothing left waits in line or is refused. ``Rate`` counts what each identity spends over time of connections,
calls or bytes. ``FairQueue`` gives turns: one loop does all work of the daemon, so work on stored events is
cut into pieces of a few milliseconds, and between two of them other work is done.

They know identities and numbers, but neither gRPC nor sockets, nor what the numbers count.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Protocol

from nodeagent.api.access import limits
from nodeagent.api.access.limits import Bucket, Limit, RateLimit
from nodeagent.api.refusal import Refusal, Status

SHARE: Final = 0.5
"""The share of the loop's time that turns take at most, for long."""

BURST_S: Final = 1.0
"""So much work is done without rests, so that a reader of some ten thousand events is not slowed down."""


class LimitedCaller(Protocol):
    """A caller, counted as one identity. ``is_operator``: also of what is kept for operators."""

    @property
    def counted_as(self) -> str: ...

    @property
    def is_operator(self) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Why there is nothing left. ``is_own``: the taker has all that one may have; else all have too much."""

    is_own: bool
    reason: str


class Quota:
    """One limit, and what each identity has of it. Used from one event loop."""

    def __init__(self, limit: Limit) -> None:
        self.limit = limit
        self._taken: Counter[str] = Counter()
        self._waiting: Counter[str] = Counter()
        self._freed = asyncio.Event()

    @property
    def taken(self) -> int:
        return self._taken.total()

    def obstacle(self, taker: LimitedCaller, amount: int = 1) -> Obstacle | None:
        """None: there is so much left. Where all of it is free, a caller may take more than its share."""
        limit, own, total = self.limit, self._taken[taker.counted_as], self.taken
        if own and own + amount > limit.each:
            usage = f"{taker.counted_as} has {own} {limit.what}, as many as one identity may have"
            return Obstacle(is_own=True, reason=f"{usage}; end some, or wait until some have ended")
        if total and total + amount > limit.total - (0 if taker.is_operator else limit.kept):
            kept = f" beside the {limit.kept} kept for operators" if limit.kept else ""
            usage = f"there are {total} {limit.what}, as many as there may be{kept}"
            return Obstacle(is_own=False, reason=f"{usage}; try again later")
        return None

    def take(self, identity: str, amount: int = 1) -> None:
        """Whether so much is left or not; see ``obstacle``."""
        self._taken[identity] += amount

    def give_back(self, identity: str, amount: int = 1) -> None:
        self._taken[identity] -= amount
        if not self._taken[identity]:
            del self._taken[identity]
        freed, self._freed = self._freed, asyncio.Event()
        freed.set()

    @asynccontextmanager
    async def held(self, taker: LimitedCaller, amount: int = 1) -> AsyncIterator[None]:
        """So much, while within. Waits for it in line; raises ``Refusal`` where the line is full too."""
        while (obstacle := self.obstacle(taker, amount)) is not None:
            if self._waiting[taker.counted_as] >= self.limit.line:
                raise Refusal(Status.RESOURCE_EXHAUSTED, obstacle.reason)
            await self._wait(taker.counted_as)
        self.take(taker.counted_as, amount)
        try:
            yield
        finally:
            self.give_back(taker.counted_as, amount)

    async def _wait(self, identity: str) -> None:
        self._waiting[identity] += 1
        try:
            await self._freed.wait()
        finally:
            self._waiting[identity] -= 1
            if not self._waiting[identity]:
                del self._waiting[identity]


class Rate:
    """How much each identity, and all together, spend over time. ``now_s`` is CLOCK_MONOTONIC.

    It only counts: the caller decides what follows. A call or connection that is refused counts as well,
    since it costs as much as one that is not.
    """

    def __init__(self, limit: RateLimit, now_s: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._now_s = now_s
        self._total = _Tokens(limit.total, now_s())
        self._each: dict[str, _Tokens] = {}

    def affords(self, identity: str, amount: float = 1) -> bool:
        """Whether the identity has so much left, and all together have. Then it is spent."""
        own = self._own(identity)
        if min(own.left, self._total.left) < amount:
            return False
        own.spend(amount)
        self._total.spend(amount)
        return True

    def spend(self, identity: str, amount: float = 1) -> float:
        """Spend it, whether it is left or not: how many seconds until it is paid off, 0 where it was left."""
        own = self._own(identity)
        own.spend(amount)
        self._total.spend(amount)
        return max(own.debt_s, self._total.debt_s)

    def _own(self, identity: str) -> "_Tokens":
        now_s = self._now_s()
        self._total.refill(now_s)
        own = self._each.pop(identity, None) or _Tokens(self._limit.each, now_s)
        own.refill(now_s)
        self._each[identity] = own
        if len(self._each) > limits.IDENTITIES_KNOWN:
            # The identity that did nothing for longest has most of its tokens back.
            self._each.pop(next(iter(self._each)))
        return own


class _Tokens:
    """A token bucket. ``left`` below zero is owed."""

    def __init__(self, bucket: Bucket, now_s: float) -> None:
        self._bucket = bucket
        self._at_s = now_s
        self.left: float = bucket.at_once

    def refill(self, now_s: float) -> None:
        gained = (now_s - self._at_s) * self._bucket.a_second
        self.left, self._at_s = min(self._bucket.at_once, self.left + gained), now_s

    def spend(self, amount: float) -> None:
        self.left = max(self.left - amount, -self._bucket.most_owed)

    @property
    def debt_s(self) -> float:
        return max(0.0, -self.left) / self._bucket.a_second


class FairQueue:
    """One turn at a time, each identity in its turn: an identity that asks for much waits behind one that
    asks for little. ``now_s`` is CLOCK_MONOTONIC.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._is_taken = False
        self._paid_off_s = 0.0

    @asynccontextmanager
    async def turn(self, identity: str) -> AsyncIterator[None]:
        """A turn lasts until the end of the context. Waits for the turns before it, by identity."""
        await self._wait(identity)
        begun_s = self._now_s()
        try:
            yield
        finally:
            self._rest_and_pass_on(begun_s)

    async def _wait(self, identity: str) -> None:
        if not self._is_taken:
            self._is_taken = True
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(identity, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._pass_on()
            raise

    def _rest_and_pass_on(self, begun_s: float) -> None:
        now_s = self._now_s()
        self._paid_off_s = max(self._paid_off_s, begun_s) + (now_s - begun_s) / SHARE
        rest_s = self._paid_off_s - now_s - BURST_S
        if rest_s > 0:
            asyncio.get_running_loop().call_later(rest_s, self._pass_on)
        else:
            self._pass_on()

    def _pass_on(self) -> None:
        while self._waiting:
            identity = next(iter(self._waiting))
            row = self._waiting.pop(identity)
            turn = row.popleft()
            if row:
                self._waiting[identity] = row
            if not turn.done():
                turn.set_result(None)
                return
        self._is_taken = False
