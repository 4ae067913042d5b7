"""How often each identity does something, against what it may do for long.

A call or a connection that is refused costs as much as one that is not, so it counts as well. It only
reckons: what becomes of who is too fast is decided by who asks.
"""

import time
from collections.abc import Callable

from nodeagent.api.access import limits


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
