"""The store's housekeeping beside the commits: trims by retention, refills the reserved space.

Deletes go one short transaction at a time on the writer's thread, so that commits pass between them.
Trouble here costs space, not data: it is logged, and the next commit finds out what it means.
"""

import asyncio
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from nodeagent.store.disk.durability import Durability
from nodeagent.store.disk.retention import Bounds, Retention
from nodeagent.store.disk.thread import AbandonedError
from nodeagent.store.disk.writer import Database, used_size
from nodeagent.store.errors import StoreDamagedError
from nodeagent.store.queries import read_state

_log = logging.getLogger(__name__)

PAUSE_S = 1.0
"""Between two trims that the size asks for: what comes meanwhile goes together."""

LONG_PAUSE_S = 60.0
"""Before the next where nothing more could go, and between two bases for that; none is made sooner after a
start.
"""

# Trimming goes somewhat below the limit, or every commit would bring it back to its edge.
_TRIMMED_SHARE = 0.9
_SHORT_OF_SPACE_SHARE = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """How long (nanoseconds) and how much (bytes) is kept, and how often that is seen to."""

    retention_ns: int = 30 * 24 * 3600 * 1_000_000_000
    max_size: int = 1024 * 1024 * 1024
    upkeep_s: float = 600.0


class Upkeep:
    """``trimmed`` is called, in the loop, with the oldest event number left. ``rest_on_new_base`` lets a
    replay begin here, so that the inputs before may go; false where it cannot.
    """

    def __init__(
        self,
        durability: Durability,
        keep: Keep,
        wall_ns: Callable[[], int],
        trimmed: Callable[[int], None],
        rest_on_new_base: Callable[[], Awaitable[bool]],
    ) -> None:
        self._durability = durability
        self._keep = keep
        self._wall_ns = wall_ns
        self._trimmed = trimmed
        self._retention = Retention()
        self._rest_on_new_base = rest_on_new_base
        self._based_s = time.monotonic()
        self._is_stuck = False
        """It is too large, and nothing more may go."""
        durability.max_size = keep.max_size

    async def run(self) -> None:
        """Trim at once, then every ``upkeep_s``, when the size is passed, and when the disk was found full;
        until cancelled.
        """
        while True:
            try:
                await self.trim()
            except (sqlite3.Error, OSError, StoreDamagedError, AbandonedError) as error:
                _log.warning("store: trimming failed: %s", error)
            try:
                await asyncio.wait_for(self._durability.upkeep_due.wait(), self._keep.upkeep_s)
            except TimeoutError:
                continue
            await self._pause()

    async def _pause(self) -> None:
        """Before a trim that only the size asks for; a longer one where the last has not helped."""
        passed_s = 0.0
        while passed_s < (LONG_PAUSE_S if self._is_stuck else PAUSE_S):
            if self._durability.is_space_short:
                return
            await asyncio.sleep(PAUSE_S)
            passed_s += PAUSE_S

    async def trim(self) -> None:
        """Delete what retention allows, then refill the reserved space. While degraded it does nothing.

        Raises sqlite3.Error, OSError, StoreDamagedError, or AbandonedError when the disk hangs meanwhile.
        """
        if await self._durability.on_disk(lambda database: database.is_in_place()) is False:
            self._durability.leave(f"{self._durability.path} was removed or replaced while in use")
            return
        short_of_space, self._durability.is_space_short = self._durability.is_space_short, False
        self._durability.upkeep_due.clear()
        max_size = await self._durability.on_disk(
            lambda database: self._size_to_keep(database, short_of_space)
        )
        if max_size is None:
            return
        bounds = Bounds(retention_ns=self._keep.retention_ns, max_size=max_size, now_wall_ns=self._wall_ns())
        await self._trim_to(bounds)
        if self._is_stuck and time.monotonic() >= self._based_s + LONG_PAUSE_S:
            self._based_s = time.monotonic()
            if await self._rest_on_new_base():
                await self._trim_to(bounds)
        await self._durability.on_disk(lambda database: database.reserved_space.refill())

    async def _trim_to(self, bounds: Bounds) -> None:
        self._retention.begin()
        while (
            oldest_seq := await self._durability.on_disk(lambda database: self._trim_chunk(database, bounds))
        ) is not None:
            self._trimmed(oldest_seq)
        self._is_stuck = bounds.max_size + self._retention.excess > self._keep.max_size

    def _size_to_keep(self, database: Database, short_of_space: bool) -> int:
        used = used_size(database.connection)
        if short_of_space:
            return min(self._keep.max_size, int(used * _SHORT_OF_SPACE_SHARE))
        if used > self._keep.max_size:
            return int(self._keep.max_size * _TRIMMED_SHARE)
        return self._keep.max_size

    def _trim_chunk(self, database: Database, bounds: Bounds) -> int | None:
        """On the thread: delete one chunk; the oldest event number left, None if nothing more may go."""
        work = self._retention.next_chunk(database.connection, bounds)
        if work is None:
            return None
        if work:
            database.execute(work)
        return read_state(database.connection).oldest_seq
