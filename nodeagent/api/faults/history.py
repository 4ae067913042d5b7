"""Stored events in order: pages for the API, and a stream for the readers inside the daemon.

A page comes from the feed's ring where that reaches back far enough, else from the ledger. A page from the
ledger is kept for a while, so that many readers of the same history cause one read. ``follow`` serves
``nodeagent.journal``, which writes events to the system's journal, and ``nodeagent.metrics.collector``,
which counts them. Like a subscriber it keeps a number and no queue: where retention has overtaken it, it
continues with the oldest event that is kept.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from nodeagent.api.refusal import Refusal, Status
from nodeagent.store.errors import StoreDamagedError, StoreUnreadableError
from nodeagent.store.event_feed import EventFeed
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import StoredEvent, StoreId

PAGE_EVENTS: Final = 64
"""Reading and serialising so many takes some milliseconds, in which nothing else happens."""

PAGES_KEPT: Final = 32
RETRY_S = 1.0
_log = logging.getLogger(__name__)


class EventHistory:
    """Used from one event loop."""

    def __init__(self, feed: EventFeed, ledger: Ledger) -> None:
        self._feed = feed
        self._ledger = ledger
        self._kept: OrderedDict[int, Sequence[StoredEvent]] = OrderedDict()
        self._store_id: StoreId | None = None

    @property
    def oldest_seq(self) -> int:
        """The lowest number that can surely be read."""
        return self._ledger.oldest_seq

    @property
    def durable(self) -> bool:
        """Whether all of it is on the disk; else memory has the newest."""
        return self._ledger.durable

    @property
    def last_seq(self) -> int:
        return self._feed.current.seq

    async def read(self, after_seq: int) -> Sequence[StoredEvent]:
        """Published events after a number, oldest first, a page at most; none where there are none.

        They begin later where the next ones are no longer kept. Refuses with UNAVAILABLE while the store
        cannot be read.
        """
        last_seq = self.last_seq
        recent = self._feed.recent(after_seq, PAGE_EVENTS)
        if recent is not None:
            return recent
        with _readable(after_seq):
            events = await self._stored(max(after_seq, self.oldest_seq - 1))
        return [each for each in events if after_seq < each.seq <= last_seq]

    async def first_since(self, after_seq: int, until_seq: int, since_ns: int) -> int | None:
        """The first of (after_seq, until_seq] with this wall time or a later one; refuses as ``read``."""
        with _readable(after_seq):
            return await self._ledger.first_since(after_seq, until_seq, since_ns)

    async def last_before(self, after_seq: int, until_seq: int, until_ns: int) -> int | None:
        """The last of (after_seq, until_seq] with an earlier wall time; refuses as ``read``."""
        with _readable(after_seq):
            return await self._ledger.last_before(after_seq, until_seq, until_ns)

    async def newest(self, count: int) -> Sequence[StoredEvent]:
        """The last ``count`` events; see ``read``."""
        last_seq = self.last_seq
        found: list[StoredEvent] = []
        position = max(0, last_seq - count)
        while position < last_seq and (events := await self.read(position)):
            found += events
            position = events[-1].seq
        return found

    async def _stored(self, after_seq: int) -> Sequence[StoredEvent]:
        """From the page with the next number on; pages that are full and without a hole are kept."""
        if self._store_id != self._ledger.store_id:
            self._store_id = self._ledger.store_id
            self._kept.clear()
        begin = after_seq - after_seq % PAGE_EVENTS
        if begin in self._kept:
            self._kept.move_to_end(begin)
            return self._kept[begin]
        found = await self._ledger.read_events(begin, PAGE_EVENTS)
        page = [each for each in found if each.seq <= begin + PAGE_EVENTS]
        if len(page) == PAGE_EVENTS:
            self._kept[begin] = page
            while len(self._kept) > PAGES_KEPT:
                self._kept.popitem(last=False)
        # The rest of the page may be damaged, or have made way.
        return page if page and page[-1].seq > after_seq else found


@contextmanager
def _readable(after_seq: int) -> Iterator[None]:
    """Refuses with UNAVAILABLE where the store within cannot be read."""
    try:
        yield
    except (StoreUnreadableError, StoreDamagedError) as error:
        raise Refusal(Status.UNAVAILABLE, f"events after {after_seq}: {error}") from error


async def follow(
    feed: EventFeed, ledger: Ledger, after_seq: int
) -> AsyncGenerator[Sequence[StoredEvent], None]:
    """All events after a number, in order, without end; never an empty sequence."""
    history = EventHistory(feed, ledger)
    position = after_seq
    while True:
        await feed.wait_beyond(position)
        try:
            events = await history.read(position)
        except Refusal as unreadable:
            _log.warning("%s; retrying", unreadable.reason)
            await asyncio.sleep(RETRY_S)
            continue
        if events:
            position = events[-1].seq
            yield events
        else:
            position = max(position, history.oldest_seq - 1)
            await asyncio.sleep(RETRY_S)
