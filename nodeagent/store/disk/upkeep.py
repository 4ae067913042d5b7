"""The store's housekeeping beside the commits: trims by retention, refills the reserved space.

Deletes go one short transaction at a time on the writer's thread, so that commits pass between them.
Trouble here costs space, not data: it is logged, and the next commit finds out what it means.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

from nodeagent.store.disk import retention
from nodeagent.store.disk.durability import Durability
from nodeagent.store.disk.retention import Bounds
from nodeagent.store.disk.thread import AbandonedError
from nodeagent.store.disk.writer import Database
from nodeagent.store.errors import StoreDamagedError
from nodeagent.store.queries import read_state

_log = logging.getLogger(__name__)

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
    """``trimmed`` is called, in the loop, with the oldest event number left."""

    def __init__(
        self,
        durability: Durability,
        keep: Keep,
        wall_ns: Callable[[], int],
        trimmed: Callable[[int], None],
    ) -> None:
        self._durability = durability
        self._keep = keep
        self._wall_ns = wall_ns
        self._trimmed = trimmed

    async def run(self) -> None:
        """Trim at once, then every ``upkeep_s``, and when the disk was found full; until cancelled."""
        while True:
            try:
                await self.trim()
            except (sqlite3.Error, OSError, StoreDamagedError, AbandonedError) as error:
                _log.warning("store: trimming failed: %s", error)
            try:
                await asyncio.wait_for(self._durability.space_short.wait(), self._keep.upkeep_s)
            except TimeoutError:
                continue

    async def trim(self) -> None:
        """Delete what retention allows, then refill the reserved space. While degraded it does nothing.

        Raises sqlite3.Error, OSError, StoreDamagedError, or AbandonedError when the disk hangs meanwhile.
        """
        if await self._durability.on_disk(lambda database: database.is_in_place()) is False:
            self._durability.leave(f"{self._durability.path} was removed or replaced while in use")
            return
        short_of_space = self._durability.space_short.is_set()
        self._durability.space_short.clear()
        max_size = await self._durability.on_disk(
            lambda database: self._size_to_keep(database, short_of_space)
        )
        if max_size is None:
            return
        bounds = Bounds(retention_ns=self._keep.retention_ns, max_size=max_size, now_wall_ns=self._wall_ns())
        while (
            oldest_seq := await self._durability.on_disk(lambda database: _trim_chunk(database, bounds))
        ) is not None:
            self._trimmed(oldest_seq)
        await self._durability.on_disk(lambda database: database.reserved_space.refill())

    def _size_to_keep(self, database: Database, short_of_space: bool) -> int:
        used = retention.used_size(database.connection)
        if short_of_space:
            return min(self._keep.max_size, int(used * _SHORT_OF_SPACE_SHARE))
        if used > self._keep.max_size:
            return int(self._keep.max_size * _TRIMMED_SHARE)
        return self._keep.max_size


def _trim_chunk(database: Database, bounds: Bounds) -> int | None:
    """On the thread: delete one chunk; the oldest event number left, None if there was nothing to delete."""
    work = retention.next_chunk(database.connection, bounds)
    if not work:
        return None
    database.execute(work)
    return read_state(database.connection).oldest_seq
