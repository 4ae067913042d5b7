"""What a source hands to the pump: inputs that belong in one transaction. Only the type."""

import asyncio
from dataclasses import dataclass

from nodeagent.core.model import Event, Input
from nodeagent.store.records import Cursor


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """``inputs`` in order; everything up to ``cursor`` is accounted for by this and earlier deliveries.

    ``told`` gets the events that followed at once, when they are committed and published.
    """

    source: str
    inputs: tuple[Input, ...] = ()
    cursor: Cursor | None = None
    told: asyncio.Future[tuple[Event, ...]] | None = None
