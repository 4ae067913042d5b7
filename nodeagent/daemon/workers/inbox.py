"""What the workers of one source say and do, one thing after the other, until something is due. Bounded."""

import asyncio
import contextlib
from typing import Final

from nodeagent.daemon.workers import loop_clock
from nodeagent.daemon.workers.child import Happening
from nodeagent.daemon.workers.worker_set import Crew

MAX_HEARD: Final = 32
"""More than the devices of a node that are polled together: what they answer is taken in one turn."""

OVERSLEPT_S: Final = 0.5
"""A loop that wakes later than this was itself held up; the drivers are not late by it."""


class Heard:
    """Children put what happens into ``queue``, and wait while it is full."""

    def __init__(self, crew: Crew) -> None:
        self.queue: asyncio.Queue[Happening] = asyncio.Queue(MAX_HEARD)
        self._crew = crew

    async def next(self) -> Happening | None:
        """The next happening, or None when something is due before it."""
        with contextlib.suppress(asyncio.QueueEmpty):
            return self.queue.get_nowait()
        due_s = self._crew.due_s()
        wait_s = None if due_s is None else due_s - loop_clock.now_s()
        try:
            async with asyncio.timeout(wait_s):
                return await self.queue.get()
        except TimeoutError:
            overslept_s = loop_clock.now_s() - (due_s or 0.0)
            if self._crew.worker is not None and overslept_s > OVERSLEPT_S:
                self._crew.worker.lateness.excuse(overslept_s)
            return None
