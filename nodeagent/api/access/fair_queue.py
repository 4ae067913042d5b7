"""Longer work for readers, one piece at a time: each identity in turn, with rests for everything else.

One loop does all work of the daemon. What readers ask of stored events is cut into pieces of a few
milliseconds; between two of them whatever else is due is done, and who asks much waits behind who asks
little. It knows no work, only how long each piece took.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

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
