"""What all connections of supervisors share: what is published, how inputs get to the core, who is here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from nodeagent.api.access.limits import RateLimit
from nodeagent.api.access.quota import Rate
from nodeagent.api.control.audit import AuditLog
from nodeagent.api.control.context import Ask
from nodeagent.api.jobs import limits
from nodeagent.api.jobs.chips import Ownership
from nodeagent.api.jobs.leave_after import LeaveAfter
from nodeagent.api.jobs.unkillable import UnkillableHolders
from nodeagent.api.refusal import RefusalLimit
from nodeagent.config.sections import JobsConfig
from nodeagent.core.model import JobView, Peer, View
from nodeagent.store.event_feed import EventFeed


class Share:
    """What supervisors of one sort may use together: nobody of the other sort waits for them."""

    def __init__(self, of_bytes: RateLimit) -> None:
        self.connections = Rate(limits.CONNECTION_RATE)
        self.lines = Rate(limits.LINE_RATE)
        self.inputs = Rate(limits.INPUT_RATE)
        self.bytes = Rate(of_bytes)
        self.notes = RefusalLimit()
        """So often is written down that somebody has no bytes left."""


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
    ``connected`` are those whose job has a name, by that; ``proven`` is what those share whose cgroup proves
    a job, ``unproven`` what all others do.
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
    proven: Share = field(default_factory=lambda: Share(limits.PROVEN_BYTES))
    unproven: Share = field(default_factory=lambda: Share(limits.UNPROVEN_BYTES))
    connected: dict[str, Connected] = field(default_factory=dict)

    def share_of(self, of_cgroup: str) -> Share:
        """``of_cgroup`` is the job that the supervisor's cgroup proves, "" for none."""
        return self.proven if of_cgroup else self.unproven
