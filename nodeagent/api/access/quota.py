"""Counts who has taken how much of what is limited; who finds nothing left waits in line or is refused.

It knows identities and numbers, neither gRPC nor sockets, nor what the numbers count.

How often each identity does something, against what it may do for long.

A call or a connection that is refused costs as much as one that is not, so it counts as well. It only
reckons: what becomes of who is too fast is decided by who asks.

How many bytes each identity may leave for long, and at once: a store of tokens for each, and one for all.

It only reckons: what becomes of who has none left is decided by who asks. As ``rate``, which counts deeds.

Longer work for readers, one piece at a time: each identity in turn, with rests for everything else.

One loop does all work of the daemon. What readers ask of stored events is cut into pieces of a few
milliseconds; between two of them whatever else is due is done, and who asks much waits behind who asks
little. It knows no work, only how long each piece took.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Protocol

from nodeagent.api.access import limits
from nodeagent.api.access.limits import Limit
from nodeagent.api.refusal import Refusal, Status


class Taker(Protocol):
    """Who takes, counted as one identity. ``is_operator``: also of what is kept for operators."""

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
    """One limit, and who has what of it. Used from one event loop."""

    def __init__(self, limit: Limit) -> None:
        self.limit = limit
        self._taken: Counter[str] = Counter()
        self._waiting: Counter[str] = Counter()
        self._freed = asyncio.Event()

    @property
    def taken(self) -> int:
        return self._taken.total()

    def obstacle(self, taker: Taker, amount: int = 1) -> Obstacle | None:
        """None: there is so much left. Where nobody has any, one may take more than its part."""
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
    async def held(self, taker: Taker, amount: int = 1) -> AsyncIterator[None]:
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
    """``now_s`` is CLOCK_MONOTONIC."""

    def __init__(self, limit: limits.RateLimit, now_s: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._now_s = now_s
        self._each: dict[str, float] = {}
        self._total = 0.0

    def spend(self, identity: str) -> float:
        """Once more: how many seconds it is ahead of what it may do, beyond its burst."""
        now_s, limit = self._now_s(), self._limit
        own = max(self._each.get(identity, 0.0), now_s) + 1 / limit.each
        self._total = max(self._total, now_s) + 1 / limit.total
        self._each[identity] = own
        if len(self._each) > limits.IDENTITIES_KNOWN:
            self._each = {each: until_s for each, until_s in self._each.items() if until_s > now_s}
        return max(own - now_s - limit.burst_s, self._total - now_s - limit.burst_s, 0.0)


_DAY_S: Final = 24 * 3600.0


@dataclass(slots=True)
class _Tokens:
    """``left`` may be below zero: what had to be taken is owed."""

    left: float
    at_s: float

    def refill(self, now_s: float, limit: limits.Bytes) -> None:
        gained = (now_s - self.at_s) * limit.a_day / _DAY_S
        self.left, self.at_s = min(limit.at_once, self.left + gained), now_s

    def debt_s(self, limit: limits.Bytes) -> float:
        return max(0.0, -self.left) * _DAY_S / limit.a_day


class Budget:
    """``now_s`` is CLOCK_MONOTONIC."""

    def __init__(self, limit: limits.ByteLimit, now_s: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._now_s = now_s
        self._total = _Tokens(limit.total.at_once, now_s())
        self._each: dict[str, _Tokens] = {}

    def affords(self, identity: str, size: int) -> bool:
        """Whether it has so much left, and all together have; then it is spent."""
        own = self._own(identity)
        if min(own.left, self._total.left) < size:
            return False
        self._spend(own, size)
        return True

    def owe(self, identity: str, size: int) -> float:
        """Spend what must be spent, there or not: how many seconds until it is there."""
        own = self._own(identity)
        self._spend(own, size)
        return max(own.debt_s(self._limit.each), self._total.debt_s(self._limit.total))

    def _spend(self, own: _Tokens, size: int) -> None:
        """Nobody owes more than he may have at once: then he would pay for it for days."""
        own.left = max(own.left - size, -self._limit.each.at_once)
        self._total.left = max(self._total.left - size, -self._limit.total.at_once)

    def _own(self, identity: str) -> _Tokens:
        now_s, limit = self._now_s(), self._limit
        self._total.refill(now_s, limit.total)
        own = self._each.pop(identity, None) or _Tokens(limit.each.at_once, now_s)
        own.refill(now_s, limit.each)
        self._each[identity] = own
        if len(self._each) > limits.IDENTITIES_KNOWN:
            # The one that did nothing for longest has most of its tokens back.
            self._each.pop(next(iter(self._each)))
        return own


SHARE: Final = 0.5
"""The part of the loop's time that is taken at most, for long."""

BURST_S: Final = 1.0
"""So much work is done without rests: who catches up with some ten thousand events is not slowed down."""


class FairQueue:
    """One turn at a time. ``now_s`` is CLOCK_MONOTONIC."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._is_taken = False
        self._paid_off_s = 0.0

    @asynccontextmanager
    async def turn(self, identity: str) -> AsyncIterator[None]:
        """Held while within; waits for the others that came before, by identity."""
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
