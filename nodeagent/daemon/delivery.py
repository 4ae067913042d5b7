"""What a source hands to the pump: inputs that belong in one transaction. Only the type."""

import asyncio
from dataclasses import dataclass

from nodeagent.core.model import Input
from nodeagent.store.records import Cursor, Taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """``inputs`` in order; everything up to ``cursor`` is accounted for by this and earlier deliveries.

    ``answer`` gets what became of them, when that is committed and published.
    """

    source: str
    inputs: tuple[Input, ...] = ()
    cursor: Cursor | None = None
    answer: asyncio.Future[Taken] | None = None
