"""What the workers of one source say and do, one thing after the other, until something is due. Bounded."""

import asyncio
from collections.abc import Iterable
from typing import Final

from nodeagent.daemon.workers import loop_clock
from nodeagent.daemon.workers.child import Happening, Happenings
from nodeagent.daemon.workers.worker_set import WorkerSet

MAX_QUEUED: Final = 32
"""More than the devices of a node that are polled together: what they answer is taken in one turn."""

OVERSLEPT_S: Final = 0.5
"""A loop that wakes later than this was itself held up; the drivers are not late by it."""


class Inbox:
    """Children put what happens into ``queue``, and wait while it is full."""

    def __init__(self, workers: WorkerSet) -> None:
        self.queue: Happenings = asyncio.Queue(MAX_QUEUED)
        self._workers = workers

    async def arrived(self) -> Iterable[Happening]:
        """What has happened, in order, as soon as there is any; nothing when something is due before."""
        first = [await self._next()] if self.queue.empty() else []
        rest = [self.queue.get_nowait() for _ in range(self.queue.qsize())]
        return filter(None, (*first, *rest))

    async def _next(self) -> Happening | None:
        due_s = self._workers.due_s()
        if due_s is None:
            return await self.queue.get()
        # A timer costs half of what a time-out does, which has to cancel who waits.
        timer = asyncio.get_running_loop().call_at(due_s, self._remind)
        try:
            happening = await self.queue.get()
        finally:
            timer.cancel()
        overslept_s = loop_clock.now_s() - due_s
        if happening is None and self._workers.worker is not None and overslept_s > OVERSLEPT_S:
            self._workers.worker.lateness.excuse(overslept_s)
        return happening

    def _remind(self) -> None:
        """Whoever waits is woken by anything: where something is in the queue, a reminder is not needed."""
        if self.queue.empty():
            self.queue.put_nowait(None)
