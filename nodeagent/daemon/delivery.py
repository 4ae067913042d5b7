"""What a source hands to the pump: inputs that belong in one transaction. Only the type."""

from dataclasses import dataclass

from nodeagent.core.model import Input
from nodeagent.store.records import Cursor


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """``inputs`` in order; everything up to ``cursor`` is accounted for by this and earlier deliveries."""

    source: str
    inputs: tuple[Input, ...] = ()
    cursor: Cursor | None = None
