"""Supervisors of jobs of Slurm of which it is not known which job: the daemon reports that they are there.

Such a supervisor is ``pid:PID``. A ``slurmstepd`` above it shows that Slurm has started it, but neither its
cgroup nor the prolog's record proves the job. No claim is matched with it, so a reset waits for the job. It
ends no process, and decides no level: what it sees is a signal for the core.
"""

import asyncio
from pathlib import Path
from typing import Final

from nodeagent.api.control.context import Ask
from nodeagent.api.jobs import peers
from nodeagent.api.jobs.peers import is_live
from nodeagent.core.catalog.codes import canonical
from nodeagent.core.model import AGENT, NODE, Assertion, Peer, Signal, View
from nodeagent.core.state.names import NO_CGROUP
from nodeagent.store.event_feed import EventFeed
from nodeagent.system.slurm_jobs import step_above

UNNAMED: Final = "supervisor_unnamed"
LOOK_EACH_S: Final = 5.0
_KEY: Final = canonical(UNNAMED)


class UnnamedSupervisors:
    """``procfs`` shows the processes of the node."""

    def __init__(self, feed: EventFeed, ask: Ask, procfs: Path = peers.PROCFS) -> None:
        self._feed = feed
        self._ask = ask
        self._procfs = procfs
        self._steps: dict[Peer, str] = {}

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            if (signal := self.look()) is not None:
                await self._ask(signal)
            await asyncio.sleep(LOOK_EACH_S)

    def look(self) -> Signal | None:
        """What has begun, or is over."""
        view = self._feed.current.view
        found = self._found(view)
        is_open = any(canonical(each.code) == _KEY and not each.origin.injected for each in view.conditions)
        if bool(found) == is_open:
            return None
        assertion = Assertion.OCCUR if found else Assertion.RECOVER
        evidence = {"supervisor": found[0][0], "step": found[0][1]} if found else {}
        return Signal(source=AGENT, device=NODE, code=UNNAMED, assertion=assertion, evidence=evidence)

    def _found(self, view: View) -> list[tuple[str, str]]:
        """(name of the job, step by the ``slurmstepd``) of each that lives."""
        jobs = [
            (job.name, job.peer)
            for job in view.jobs
            if is_live(job) and job.peer is not None and job.name.startswith(NO_CGROUP)
        ]
        self._steps = {peer: self._step_of(peer) for _, peer in jobs if peers.lives(peer, self._procfs)}
        return [(name, self._steps[peer]) for name, peer in jobs if self._steps.get(peer)]

    def _step_of(self, peer: Peer) -> str:
        known = self._steps.get(peer)
        return step_above(self._procfs, peer.pid) if known is None else known
