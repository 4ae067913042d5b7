"""What operators order for sources, carried from the published state to the supervisors.

    quiesced, and no reset runs    ──> each worker ends; its devices are not observed, which is no fault
    resumed                        ──> each worker starts again
    a baseline begins again        ──> a new worker takes the device as it is now

It keeps no state of its own: a daemon that starts finds the node quiesced as it was left.
"""

import logging
from collections.abc import Sequence

from nodeagent.core.model import HoldKind, ResetStage, View
from nodeagent.daemon.sources.supervisor import SourceSupervisor
from nodeagent.store.event_feed import EventFeed

log = logging.getLogger(__name__)

_KEEPS_OPEN = "a worker hangs in a call and keeps its driver open"
_BUSY = (ResetStage.RUNNING, ResetStage.VERIFYING)


class Quiescence:
    """``sources`` are those that have a driver open."""

    def __init__(self, feed: EventFeed, sources: Sequence[SourceSupervisor]) -> None:
        self._feed = feed
        self._sources = sources
        self._has_let_go = False

    def begin(self) -> None:
        """Before the sources run: none begins on a node that was left quiesced."""
        if _why_let_go(self._feed.current.view):
            for source in self._sources:
                source.hold_off()

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            publication = self._feed.current
            view = publication.view
            if not self._has_let_go and (why := _why_let_go(view)):
                await self._let_go(why)
            elif self._has_let_go and not _quiesced_by(view):
                self._take_up()
            await self._feed.wait_change(publication)

    async def _let_go(self, why: str) -> None:
        self._has_let_go = True
        for source in self._sources:
            if not await source.let_go(why):
                log.warning("%s: %s", source.name, _KEEPS_OPEN)
                await source.let_go(f"{why}; {_KEEPS_OPEN}")

    def _take_up(self) -> None:
        self._has_let_go = False
        for source in self._sources:
            source.take_up()


def _why_let_go(view: View) -> str:
    """A reset that has begun is seen to its end first, which needs the worker."""
    if any(reset.stage in _BUSY and not reset.is_dry_run for reset in view.resets):
        return ""
    return _quiesced_by(view)


def _quiesced_by(view: View) -> str:
    holds = (hold for hold in view.holds if hold.kind is HoldKind.QUIESCE)
    return next((f"quiesced by {hold.owner}: {hold.reason}" for hold in holds), "")


class Rebaselining:
    """``sources`` are those whose workers may have to learn of it."""

    def __init__(self, feed: EventFeed, sources: Sequence[SourceSupervisor]) -> None:
        self._feed = feed
        self._sources = {source.name: source for source in sources}

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            publication = self._feed.current
            for ended in publication.view.baselines:
                if not ended.content and ended.source in self._sources:
                    self._sources[ended.source].restart_baseline(ended.device_id, ended.number)
            await self._feed.wait_change(publication)
