"""The devices of a reset meanwhile: the worker leaves them alone, or ends where no process may have them
open.

It decides nothing about resets, and touches no device.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from nodeagent.daemon.resets.exchange import RequestedAttempt
from nodeagent.daemon.sources.supervisor import SourceSupervisor
from nodeagent.store.event_feed import EventFeed
from nodeagent.vendors import RESETS

log = logging.getLogger(__name__)

BACK_LIMIT_S: Final = 30.0
"""So long the devices may take to be read again, before the result of the reset is reported."""


class Detachment:
    """``sources`` by the name of their driver, which is its vendor's for those that can be reset."""

    def __init__(self, feed: EventFeed, sources: Mapping[str, SourceSupervisor]) -> None:
        self._feed = feed
        self._sources = sources

    async def set(self, attempt: RequestedAttempt) -> bool:
        """False: what we have open of them cannot be closed."""
        source = self._sources.get(attempt.vendor)
        if source is None:
            return True
        if _needs_closed(attempt):
            return await source.let_go(_why(attempt))
        await source.rest(attempt.names, _why(attempt))
        return True

    def begin(self, attempt: RequestedAttempt) -> None:
        """As ``set``, before the source runs."""
        source = self._sources.get(attempt.vendor)
        if source is not None and _needs_closed(attempt):
            source.hold_off()
        elif source is not None:
            source.begin_at_rest(attempt.names, _why(attempt))

    async def take_back(self, attempt: RequestedAttempt) -> None:
        """They are asked again."""
        source = self._sources.get(attempt.vendor)
        if source is not None and _needs_closed(attempt):
            source.take_up()
        elif source is not None:
            await source.wake(attempt.names)

    async def are_back(self, attempt: RequestedAttempt) -> None:
        """Wait until all of them are read again, or long enough."""
        about = {device.id for device in attempt.devices}
        try:
            async with asyncio.timeout(BACK_LIMIT_S):
                publication = self._feed.current
                while any(view.id in about and not view.observed for view in publication.view.devices):
                    publication = await self._feed.wait_change(publication)
        except TimeoutError:
            log.warning("%s: not all of its devices can be read", attempt.name)

    def readings(self, attempt: RequestedAttempt) -> dict[str, Mapping[str, float]]:
        """The last ones, by the device's name."""
        source = self._sources.get(attempt.vendor)
        readings = source.health().readings if source is not None else {}
        return {name: readings[name] for name in attempt.names if name in readings}


def _why(attempt: RequestedAttempt) -> str:
    return f"not read during the reset of {attempt.names[0]}"


def _needs_closed(attempt: RequestedAttempt) -> bool:
    """Whether no process may have its devices open meanwhile: then the worker ends. Else it leaves them
    alone.
    """
    return attempt.vendor in RESETS and RESETS[attempt.vendor].needs_closed
