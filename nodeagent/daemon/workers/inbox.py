"""What the workers of one source say and do, one thing after the other, until something is due. Bounded."""

import asyncio
import contextlib
from typing import Final

from nodeagent.daemon.workers import loop_clock
from nodeagent.daemon.workers.child import Happening
from nodeagent.daemon.workers.worker_set import WorkerSet

MAX_QUEUED: Final = 32
"""More than the devices of a node that are polled together: what they answer is taken in one turn."""

OVERSLEPT_S: Final = 0.5
"""A loop that wakes later than this was itself held up; the drivers are not late by it."""


class Inbox:
    """Children put what happens into ``queue``, and wait while it is full."""

    def __init__(self, workers: WorkerSet) -> None:
        self.queue: asyncio.Queue[Happening] = asyncio.Queue(MAX_QUEUED)
        self._workers = workers

    async def next(self) -> Happening | None:
        """The next happening, or None when something is due before it."""
        with contextlib.suppress(asyncio.QueueEmpty):
            return self.queue.get_nowait()
        due_s = self._workers.due_s()
        wait_s = None if due_s is None else due_s - loop_clock.now_s()
        try:
            async with asyncio.timeout(wait_s):
                return await self.queue.get()
        except TimeoutError:
            overslept_s = loop_clock.now_s() - (due_s or 0.0)
            if self._workers.worker is not None and overslept_s > OVERSLEPT_S:
                self._workers.worker.lateness.excuse(overslept_s)
            return None
