"""How fast connections are begun: a cluster whose network comes back is not connected to all at once.

A TLS handshake takes a millisecond or two of a processor on this side alone.
"""

import asyncio
from typing import Final

ATTEMPTS_A_SECOND: Final = 250.0


class Pace:
    """Turns, so many a second, in the order in which they were asked for."""

    def __init__(self, a_second: float = ATTEMPTS_A_SECOND) -> None:
        self._interval_s = 1 / a_second
        self._next_s = 0.0

    async def turn(self) -> None:
        now_s = asyncio.get_running_loop().time()
        await asyncio.sleep(self.given_at_s(now_s) - now_s)

    def given_at_s(self, now_s: float) -> float:
        """When the next turn is, for who asks now; it is his."""
        at_s = max(now_s, self._next_s)
        self._next_s = at_s + self._interval_s
        return at_s
