"""Carries a person's order to begin a baseline anew to the source of the part.

    ordered ──> the core ends the baseline, and publishes that ──> a worker that takes the part as it is

It follows what is published, and holds nothing of its own.
"""

from collections.abc import Sequence

from nodeagent.daemon.sources.supervisor import Supervisor
from nodeagent.store.event_feed import EventFeed


class Rebaselining:
    """``sources`` are those whose workers may have to learn of it."""

    def __init__(self, feed: EventFeed, sources: Sequence[Supervisor]) -> None:
        self._feed = feed
        self._sources = {source.name: source for source in sources}

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            publication = self._feed.current
            for ended in publication.view.baselines:
                if not ended.content and ended.source in self._sources:
                    self._sources[ended.source].begin_anew(ended.device_id, ended.number)
            await self._feed.wait_change(publication)
