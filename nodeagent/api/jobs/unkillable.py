"""Processes that use a chip and cannot be ended: the daemon looks for them itself.

A holder counts once the kernel has not let it go for a while after it was killed or has begun to end, or
once it has outlived, for a minute, a supervisor that did not end it. Its chips take no new work then, and
do again when the process is gone. A supervisor's report makes the daemon look at once, and proves nothing.

It finds the open faults in what is published, so that a start of the daemon goes on with them. It ends no
process, and decides no level: what it sees are signals for the core.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nodeagent.api.control.context import Ask
from nodeagent.api.jobs import chips, peers
from nodeagent.api.jobs.dead_supervisors import is_of
from nodeagent.api.jobs.peers import is_live
from nodeagent.core.catalog.codes import canonical
from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.machines.supervisor_reports import UNKILLABLE
from nodeagent.core.model import (
    AGENT,
    Assertion,
    Condition,
    DeviceView,
    Holder,
    JobStage,
    JobView,
    Kind,
    Signal,
    View,
)
from nodeagent.store.event_feed import EventFeed
from nodeagent.system.processes import ProcessLife, ancestry, life_of

LOOK_EACH_S: Final = 5.0

LASTS_S: Final = 30.0
"""A process that has much memory, or a large chip, takes some seconds to end."""

OUTLIVES_S: Final = 60.0

SOURCE: Final = AGENT

_KEY: Final = canonical(UNKILLABLE)
_PID, _START = "pid", "start_time"
"""Keys of the evidence by which a later life of the daemon knows the process again."""

Process = tuple[int, int]
"""Its pid, and when it began."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What one look has found: the life of each user of a chip, and why one has outlived its supervisor."""

    view: View
    lives: Mapping[Process, ProcessLife]
    outlived: Mapping[Process, str]


class UnkillableHolders:
    """``now_s`` is CLOCK_MONOTONIC."""

    def __init__(
        self,
        feed: EventFeed,
        ask: Ask,
        now_s: Callable[[], float] = time.monotonic,
        procfs: Path = peers.PROCFS,
    ) -> None:
        self.look_each_s = LOOK_EACH_S
        self._feed = feed
        self._ask = ask
        self._now_s = now_s
        self._procfs = procfs
        self._ending_since_s: dict[Process, float] = {}
        self._of_jobs: dict[Process, str] = {}

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            if signals := self.look():
                await self._ask(*signals)
            await asyncio.sleep(self.look_each_s)

    def look(self) -> list[Signal]:
        """What has begun, and then what is over."""
        seen, now_s = self._see(), self._now_s()
        ending = (process for process, life in seen.lives.items() if life is ProcessLife.ENDING)
        self._ending_since_s = {each: self._ending_since_s.get(each, now_s) for each in ending}
        faults = {each.device_id: each for each in seen.view.conditions if _is_own(each)}
        stuck = {device.id: next(self._stuck(seen, device, now_s), None) for device in seen.view.devices}
        begun, over = list[Signal](), list[Signal]()
        for device in seen.view.devices:
            fault, found = faults.get(device.id), stuck[device.id]
            if fault is None and found is not None:
                begun.append(_occurs(device, *found))
            elif fault is not None and found is None and not _goes_on(seen, device, fault, stuck):
                over.append(_recovers(device))
        return [*begun, *over]

    def look_at(self, job: JobView) -> list[Signal]:
        """Its supervisor reports a process that cannot be ended: what is seen of that now."""
        view = self._feed.current.view
        known = {each.device_id for each in view.conditions if _is_own(each)}
        signals = []
        for device in chips.devices_of(view, job):
            stuck = (
                holder
                for holder in device.holders or ()
                if is_of(holder, job.name) and self._life(holder) is ProcessLife.ENDING
            )
            holder = next(stuck, None)
            if holder is not None and device.id not in known:
                signals.append(_occurs(device, holder, "it was killed, and is there still"))
        return signals

    # ------------------------------------------------------------------ what is seen

    def _see(self) -> _Seen:
        view = self._feed.current.view
        holders = {_process(each): each for device in view.devices for each in device.holders or ()}
        lives = {process: self._life(holder) for process, holder in holders.items() if holder.start_time}
        return _Seen(view, lives, dict(self._outlived(view, holders)))

    def _life(self, holder: Holder) -> ProcessLife:
        return life_of(self._procfs, holder.pid, holder.start_time)

    def _outlived(self, view: View, holders: Mapping[Process, Holder]) -> Iterator[tuple[Process, str]]:
        """Processes that ran below a supervisor and are there a minute after it has left. One that left with
        0 had nothing to end.
        """
        supervised = {job.name: job for job in view.jobs if job.stage is not None}
        before = {process: name for process, name in self._of_jobs.items() if name in supervised}
        living = ((job.name, job.peer) for job in supervised.values() if is_live(job))
        supervisors = {(peer.pid, peer.start_time): name for name, peer in living if peer is not None}
        found = {process: before.get(process) or self._whose(process, supervisors) for process in holders}
        self._of_jobs = {process: name for process, name in found.items() if name}
        for process, name in self._of_jobs.items():
            job = supervised[name]
            left = job.stage is JobStage.ENDED and job.status
            if left and view.now_ns - job.since_ns >= OUTLIVES_S * SECOND_NS:
                yield process, f"it is there {OUTLIVES_S:.0f} s after its supervisor left with {job.status}"

    def _whose(self, process: Process, supervisors: Mapping[Process, str]) -> str:
        """The job of the nearest supervisor above it, "" where there is none."""
        above = ancestry(process[0], self._procfs) if supervisors else ()
        return next((supervisors[each] for each in above if each in supervisors), "")

    def _stuck(self, seen: _Seen, device: DeviceView, now_s: float) -> Iterator[tuple[Holder, str]]:
        for holder in device.holders or ():
            process = _process(holder)
            since_s = self._ending_since_s.get(process)
            if since_s is not None and now_s - since_s >= LASTS_S:
                yield holder, f"it was killed, or ends by itself, and is there {now_s - since_s:.0f} s later"
            elif process in seen.outlived and _life(seen, holder) is not ProcessLife.GONE:
                yield holder, seen.outlived[process]


def _goes_on(seen: _Seen, device: DeviceView, fault: Condition, stuck: Mapping[str, object]) -> bool:
    """Whether the fault is of a process that is there, or of one that is about to count. An earlier version
    reported it for the node: that is over once nothing is about to count on any chip.
    """
    if device.kind is Kind.NODE:
        others = (each for each in seen.view.devices if stuck[each.id] is None)
        return any(
            _life(seen, holder) is ProcessLife.ENDING for each in others for holder in each.holders or ()
        )
    named = fault.backing.evidence.get(_PID), fault.backing.evidence.get(_START)
    return any(
        _life(seen, holder) is ProcessLife.ENDING
        or (
            (str(holder.pid), str(holder.start_time)) == named and _life(seen, holder) is not ProcessLife.GONE
        )
        for holder in device.holders or ()
    )


def _life(seen: _Seen, holder: Holder) -> ProcessLife:
    return seen.lives.get(_process(holder), ProcessLife.GONE)


def _process(holder: Holder) -> Process:
    return holder.pid, holder.start_time


def _is_own(condition: Condition) -> bool:
    """What was injected ends by hand."""
    return canonical(condition.code) == _KEY and not condition.origin.injected and condition.source == SOURCE


def _occurs(device: DeviceView, holder: Holder, why: str) -> Signal:
    evidence = {
        "command": holder.command,
        _PID: str(holder.pid),
        _START: str(holder.start_time),
        "job": holder.job,
        "why": why,
    }
    return _signal(device, Assertion.OCCUR, {key: value for key, value in evidence.items() if value})


def _recovers(device: DeviceView) -> Signal:
    return _signal(device, Assertion.RECOVER, {})


def _signal(device: DeviceView, assertion: Assertion, evidence: Mapping[str, str]) -> Signal:
    return Signal(source=SOURCE, device=device.name, code=UNKILLABLE, assertion=assertion, evidence=evidence)
