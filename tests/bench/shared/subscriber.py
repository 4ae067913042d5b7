"""A subscriber of the real daemon through the public client: when did which fault arrive."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path

from nodeagent.client import AsyncClient, Event, EventKind

ARRIVAL_LIMIT_S = 10.0


class Subscriber:
    """Open with ``subscribed``. Times are CLOCK_MONOTONIC, taken when the event is in the caller's hands."""

    def __init__(self, client: AsyncClient) -> None:
        self.client = client
        self._raised: dict[tuple[str, str], asyncio.Future[tuple[int, Event]]] = {}

    async def follow(self, opened: asyncio.Event) -> None:
        async for update in self.client.watch():
            now_ns = time.monotonic_ns()
            opened.set()
            if isinstance(update, Event) and update.kind is EventKind.RAISED:
                arrival = self._arrival(update.device, update.code)
                if not arrival.done():
                    arrival.set_result((now_ns, update))

    async def raised(self, device: str, code: str) -> tuple[int, Event]:
        """When the fault was first received, and the event. Raises ``TimeoutError``."""
        async with asyncio.timeout(ARRIVAL_LIMIT_S):
            return await self._arrival(device, code)

    def _arrival(self, device: str, code: str) -> asyncio.Future[tuple[int, Event]]:
        key = (device, code)
        if key not in self._raised:
            self._raised[key] = asyncio.get_running_loop().create_future()
        return self._raised[key]


@contextlib.asynccontextmanager
async def subscribed(socket: Path) -> AsyncIterator[Subscriber]:
    async with AsyncClient(socket) as client:
        subscriber, opened = Subscriber(client), asyncio.Event()
        following = asyncio.create_task(subscriber.follow(opened))
        await opened.wait()
        try:
            yield subscriber
        finally:
            following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await following
