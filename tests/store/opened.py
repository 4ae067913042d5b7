"""A ledger that is open while a test runs, and what it found."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from nodeagent.core.model import Carried
from nodeagent.store.disk.durability import Limits
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import StoreRecovery
from tests.store.samples import (
    MACHINE,
    WALL_NS,
)
from tests.waiting import WAIT_LIMIT_S

MIB = 1024 * 1024


FAST = Limits(commit_deadline_s=60.0, open_deadline_s=60.0, retry_s=0.02, reserved_size=MIB)


class Opened:
    """A ledger, what it found, and a way to await its changes of durability."""

    def __init__(self, directory: Path, limits: Limits, carry: Callable[[], list[Carried]] | None) -> None:
        self.changes: asyncio.Queue[bool] = asyncio.Queue()
        self.ledger = Ledger(
            directory,
            MACHINE,
            limits=limits,
            carry=carry,
            wall_ns=lambda: WALL_NS,
            on_durability_change=lambda: self.changes.put_nowait(self.ledger.durable),
        )
        self.recovery: StoreRecovery

    async def durable(self) -> None:
        """Wait until what is committed is on the disk again."""
        async with asyncio.timeout(WAIT_LIMIT_S):
            while not await self.changes.get():
                pass


@asynccontextmanager
async def opened(
    directory: Path, limits: Limits = FAST, carry: Callable[[], list[Carried]] | None = None
) -> AsyncIterator[Opened]:
    one = Opened(directory, limits, carry)
    one.recovery = await one.ledger.open()
    yield one
    await one.ledger.close()
