"""Gives the committed events in order to the readers inside the daemon: ``nodeagent.journal``, which writes
them to the system's journal, and ``nodeagent.metrics.collector``, which counts them.

Like a subscriber it keeps a number and no queue. Where retention has overtaken it, it continues with the
oldest event that is kept.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence

from nodeagent.api.faults.history import History
from nodeagent.api.refusal import Refusal
from nodeagent.store.event_feed import EventFeed
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import StoredEvent

RETRY_S = 1.0

_log = logging.getLogger(__name__)


async def follow(
    feed: EventFeed, ledger: Ledger, after_seq: int
) -> AsyncGenerator[Sequence[StoredEvent], None]:
    """All events after a number, in order, without end; never an empty sequence."""
    history = History(feed, ledger)
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
