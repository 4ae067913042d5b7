"""What all connections of supervisors share: what is published, how inputs get to the core, who is here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nodeagent.api.access.rate import Rate
from nodeagent.api.control.audit_log import AuditLog
from nodeagent.api.control.context import Ask
from nodeagent.api.jobs import limits
from nodeagent.api.jobs.chips import Ownership
from nodeagent.config.jobs import JobsConfig
from nodeagent.store.event_feed import EventFeed

if TYPE_CHECKING:
    from nodeagent.api.jobs.connection import Connection


@dataclass(kw_only=True)
class Desk:
    """``readings`` gives the last of each observed device, by its name. ``config`` is replaced at a reload.
    ``connected`` are those whose job has a name, by that.
    """

    feed: EventFeed
    ask: Ask
    readings: Callable[[], Mapping[str, Mapping[str, float]]]
    audit: AuditLog
    config: JobsConfig
    version: str
    ownership: Ownership = field(default_factory=Ownership)
    lines: Rate = field(default_factory=lambda: Rate(limits.LINE_RATE))
    inputs: Rate = field(default_factory=lambda: Rate(limits.INPUT_RATE))
    connected: "dict[str, Connection]" = field(default_factory=dict)
