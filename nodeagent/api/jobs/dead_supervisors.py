"""Ends the jobs whose supervisor is dead, once no process of theirs is left for a while; sooner where a reset
waits for them.

It finds them in what is published, so that a start of the daemon changes nothing but that the while begins
again. It ends no process.
"""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from nodeagent.api.control.context import Ask
from nodeagent.api.jobs import chips, peers
from nodeagent.api.jobs.peers import is_live
from nodeagent.core.machines import reset_blockers
from nodeagent.core.model import Holder, JobEnded, JobView, View
from nodeagent.core.state.names import NO_CGROUP, cgroup_of
from nodeagent.store.event_feed import EventFeed

WAIT_FOR_RESTART_S: Final = 60.0
"""A supervisor that died may be started again, and go on with its job."""

WAIT_FOR_POLL_S: Final = 2.0
"""So long where a reset of its chips waits for it: drivers list the processes each second."""

LOOK_EACH_S: Final = 2.0
WHY: Final = "its supervisor has died, and no process of it is left"


class DeadSupervisors:
    """``now_s`` is CLOCK_MONOTONIC."""

    def __init__(
        self,
        feed: EventFeed,
        ask: Ask,
        wait_s: float = WAIT_FOR_RESTART_S,
        look_each_s: float = LOOK_EACH_S,
        now_s: Callable[[], float] = time.monotonic,
        procfs: Path = peers.PROCFS,
    ) -> None:
        self._feed = feed
        self._ask = ask
        self.wait_s = wait_s
        self.wait_for_poll_s = WAIT_FOR_POLL_S
        self.look_each_s = look_each_s
        self._now_s = now_s
        self._procfs = procfs
        self._since_s: dict[str, float] = {}

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            for name in self.look():
                await self._ask(JobEnded(job=name, why=WHY))
            await asyncio.sleep(self.look_each_s)

    def look(self) -> list[str]:
        """The names of jobs that have had neither a supervisor nor a process for so long."""
        view, now_s = self._feed.current.view, self._now_s()
        left_alone = [job for job in view.jobs if self._is_left_alone(view, job)]
        self._since_s = {job.name: self._since_s.get(job.name, now_s) for job in left_alone}
        return [job.name for job in left_alone if now_s - self._since_s[job.name] >= self._wait_s(view, job)]

    def _wait_s(self, view: View, job: JobView) -> float:
        pending = (reset for reset in view.resets if reset.is_pending and not reset.is_dry_run)
        is_awaited = any(not set(job.devices).isdisjoint(reset.members) for reset in pending)
        return min(self.wait_s, self.wait_for_poll_s) if is_awaited else self.wait_s

    def _is_left_alone(self, view: View, job: JobView) -> bool:
        if not is_live(job) or job.peer is None or peers.lives(job.peer, self._procfs):
            return False
        devices = chips.devices_of(view, job)
        return not any(is_of(holder, job.name) for device in devices for holder in device.holders or ())


def is_of(holder: Holder, job: str) -> bool:
    """Whether the process may be one of the job's; without a cgroup that is unknown."""
    name = cgroup_of(job)
    if name.startswith(NO_CGROUP):
        return not holder.job
    return reset_blockers.has_registered_jobs(frozenset({name}), holder.job)
