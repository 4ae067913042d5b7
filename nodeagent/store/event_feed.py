"""What the outlets read: the publication in force and the newest committed events, in memory.

Only committed values are put here, by the pump, in the event loop. It reads no disk: the ledger
has events that are older than its ring.
"""

import asyncio
from collections import deque

from nodeagent.core.model import View
from nodeagent.store.records import Publication, StoredEvent, StoreId

RING_EVENTS = 4096

_NOTHING = Publication(
    view=View(), store_id=StoreId(uuid="", epoch=0), seq=0, durable=False, wall_offset_ns=0
)


class EventFeed:
    """One writer (the pump), any number of readers, all in one event loop."""

    def __init__(self, capacity: int = RING_EVENTS) -> None:
        self._current = _NOTHING
        self._ring: deque[StoredEvent] = deque(maxlen=capacity)
        self._changed = asyncio.Event()

    @property
    def current(self) -> Publication:
        """The publication in force; before the first one an empty view at seq 0, not durable."""
        return self._current

    def publish(self, publication: Publication, events: tuple[StoredEvent, ...] = ()) -> None:
        """Swap in what was committed and wake every waiter once.

        ``events`` are those since the last publication; a hole before them empties the ring, so that
        ``recent`` never skips a number.
        """
        if events:
            if self._ring and events[0].seq != self._ring[-1].seq + 1:
                self._ring.clear()
            self._ring.extend(events)
        self._current = publication
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def recent(self, after_seq: int, most: int = RING_EVENTS) -> tuple[StoredEvent, ...] | None:
        """The first ``most`` published events beyond ``after_seq``; None if the ring begins later."""
        wanted = self._current.seq - after_seq
        if wanted <= 0:
            return ()
        if wanted > len(self._ring) or self._ring[-1].seq != self._current.seq:
            return None
        begin = len(self._ring) - wanted
        return tuple([self._ring[place] for place in range(begin, begin + min(wanted, most))])

    def newest(self) -> tuple[StoredEvent, ...]:
        """All that are in memory, oldest first."""
        return tuple(self._ring)

    async def wait_beyond(self, seq: int, store_id: StoreId | None = None) -> Publication:
        """Wait until something beyond ``seq`` is published, or another store id than the one given."""
        while self._current.seq <= seq and store_id in (None, self._current.store_id):
            await self._changed.wait()
        return self._current

    async def wait_change(self, seen: Publication) -> Publication:
        """Wait until another publication than ``seen`` is in force, with or without new events."""
        while self._current is seen:
            await self._changed.wait()
        return self._current
