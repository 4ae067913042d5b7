"""How many bytes each identity may leave for long, and at once: a store of tokens for each, and one for all.

It only reckons: what becomes of who has none left is decided by who asks. As ``rate``, which counts deeds.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from nodeagent.api.access import limits

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
