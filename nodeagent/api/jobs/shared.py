"""What the connections of supervisors share: the published view, the way of inputs to the core, and limits.

``Spending`` is what one supervisor may write to the disk, counted for its user. Beyond that, reports that
only inform are dropped, and those that move a job are taken late and without their texts. No job is lost for
that: a chip may wait for the report of its supervisor.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from nodeagent.api.access.limits import RateLimit
from nodeagent.api.access.quota import Rate
from nodeagent.api.control.audit import AuditLog
from nodeagent.api.control.context import Ask
from nodeagent.api.jobs import limits
from nodeagent.api.jobs.chips import JobUse, Ownership
from nodeagent.api.jobs.leave_after import LeaveAfter
from nodeagent.api.jobs.unkillable import UnkillableHolders
from nodeagent.api.refusal import RefusalLimit
from nodeagent.config.sections import JobsConfig
from nodeagent.core.catalog.settings import ResetSettings
from nodeagent.core.model import JobView, Kind, Peer, RunReported, RunReportKind, View
from nodeagent.job.lines import LearntLimits
from nodeagent.store.event_feed import EventFeed


class Share:
    """What supervisors of one sort may use together: those of the other sort do not wait for them."""

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
    limits: LearntLimits

    def is_another(self, peer: Peer) -> bool: ...

    def replace(self) -> None: ...

    def show(self, view: View, jobs: Mapping[str, JobView]) -> None: ...

    def grow(self, use: JobUse) -> None: ...


@dataclass(kw_only=True)
class Shared:
    """``readings`` gives the last of each observed device, by its name. ``config`` is replaced at a reload.
    ``connected`` are those whose job has a name, by that; ``proven`` is what those share whose cgroup proves
    a job, ``unproven`` what all others do. ``resets`` gives the settings of resets in force.
    """

    feed: EventFeed
    ask: Ask
    readings: Callable[[], Mapping[str, Mapping[str, float]]]
    audit: AuditLog
    config: JobsConfig
    version: str
    resets: Callable[[], ResetSettings]
    leaving: LeaveAfter
    unkillable: UnkillableHolders
    ownership: Ownership = field(default_factory=Ownership)
    proven: Share = field(default_factory=lambda: Share(limits.PROVEN_BYTES))
    unproven: Share = field(default_factory=lambda: Share(limits.UNPROVEN_BYTES))
    connected: dict[str, Connected] = field(default_factory=dict)

    def reset_modes(self) -> dict[str, str]:
        """How far resets go, by the vendor of each chip that a driver observes."""
        settings = self.resets()
        chips = (each for each in self.feed.current.view.devices if each.kind is Kind.CHIP and each.observed)
        return {chip.vendor: settings.of_vendor(chip.vendor).value for chip in chips}

    def share_of(self, of_cgroup: str) -> Share:
        """``of_cgroup`` is the job that the supervisor's cgroup proves, "" for none."""
        return self.proven if of_cgroup else self.unproven


INFORMS_ONLY: Final = frozenset(
    {
        RunReportKind.SUSPECTED,
        RunReportKind.SUSPENDED,
        RunReportKind.CLEARED,
        RunReportKind.SLOW,
        RunReportKind.KEEPS_UP,
    }
)
"""They move no job."""

log = logging.getLogger(__name__)


class Spending:
    """``who`` answers for the job, and is whom limits count."""

    def __init__(self, share: Share, who: str) -> None:
        self._share = share
        self._who = who

    async def pay(self, *texts: str) -> None:
        """For an input that moves the job, of which the supervisor chose these texts."""
        size = size_of(*texts)
        if not self._share.bytes.affords(self._who, size):
            await self._owe(size)

    async def pay_for(self, report: RunReported) -> RunReported | None:
        """As much of it as there are bytes for, None for nothing."""
        if self._share.bytes.affords(
            self._who, size_of(report.why, *report.evidence, *report.evidence.values())
        ):
            return report
        if report.what in INFORMS_ONLY:
            self._note()
            return None
        await self._owe(size_of())
        return replace(report, why="", evidence={})

    async def _owe(self, size: int) -> None:
        self._note()
        await asyncio.sleep(min(self._share.bytes.spend(self._who, size), limits.MAX_WAIT_S))

    def _note(self) -> None:
        if self._share.notes.admit() is not None:
            log.warning(
                "jobs.socket: %s has left as much on the disk as it may for now: what moves its jobs is slow,"
                " and what only informs is not kept",
                self._who,
            )


def size_of(*texts: str) -> int:
    """What an input with its event takes on the disk, in bytes."""
    return limits.INPUT_BYTES + limits.TEXT_COPIES * sum(len(text.encode()) for text in texts)
