"""What all connections of supervisors share: what is published, how inputs get to the core, who is here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from nodeagent.api.access.rate import Rate
from nodeagent.api.control.audit_log import AuditLog
from nodeagent.api.control.context import Ask
from nodeagent.api.jobs import limits
from nodeagent.api.jobs.chips import Ownership
from nodeagent.api.jobs.leave_after import LeaveAfter
from nodeagent.api.jobs.unkillable import UnkillableHolders
from nodeagent.config.jobs import JobsConfig
from nodeagent.core.model import JobView, Peer, View
from nodeagent.store.event_feed import EventFeed


class Connected(Protocol):
    """A supervisor's connection, to the others and to the listener."""

    peer: Peer
    name: str

    def is_another(self, peer: Peer) -> bool: ...

    def replace(self) -> None: ...

    def show(self, view: View, jobs: Mapping[str, JobView]) -> None: ...

    def grow(self, held: Sequence[str]) -> None: ...


@dataclass(kw_only=True)
class Shared:
    """``readings`` gives the last of each observed device, by its name. ``config`` is replaced at a reload.
    ``connected`` are those whose job has a name, by that.
    """

    feed: EventFeed
    ask: Ask
    readings: Callable[[], Mapping[str, Mapping[str, float]]]
    audit: AuditLog
    config: JobsConfig
    version: str
    leaving: LeaveAfter
    unkillable: UnkillableHolders
    ownership: Ownership = field(default_factory=Ownership)
    lines: Rate = field(default_factory=lambda: Rate(limits.LINE_RATE))
    inputs: Rate = field(default_factory=lambda: Rate(limits.INPUT_RATE))
    connected: dict[str, Connected] = field(default_factory=dict)
