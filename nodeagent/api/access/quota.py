"""Counts who has taken how much of what is limited; who finds nothing left waits in line or is refused.

It knows identities and numbers, neither gRPC nor sockets, nor what the numbers count.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

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
