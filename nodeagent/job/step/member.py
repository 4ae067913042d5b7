"""One node's part in a step: what the plan asks of it, how the run has ended on it, what it sees of a hang
and of its ranks' step times.

It decides nothing. The supervisor of the node works as it does everywhere; the loop on the batch host reads
what each node has written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from nodeagent.job.hang.settings import HangSettings
from nodeagent.job.hang.watch import RunWatch
from nodeagent.job.model import Counts, ExitStatus, Policy
from nodeagent.job.sample import StepTime
from nodeagent.job.session.state import EndCause, SessionState
from nodeagent.job.session.values import Hung, Leave, ProcessId, SessionBegan, Slowed
from nodeagent.job.shell.loop import now_ns, seconds
from nodeagent.job.shell.standard_error import print_message
from nodeagent.job.slow.step_times import BehindRank
from nodeagent.job.slow.watch import SlowWatch
from nodeagent.job.step.folder import StepFolder
from nodeagent.job.step.values import NodeOutcome, RunPlan
from nodeagent.job.step.whole_job_hang import NodeHangReport
from nodeagent.job.step.whole_job_slow import NodeStepTimes, names, newest_of_each, thinned

NODE_VARIABLE: Final = "SLURMD_NODENAME"
"""srun(1), OUTPUT ENVIRONMENT VARIABLES."""


class NoMember(Exception):
    """This process is no part of a step. The message gives the reason and what to do."""


class StepMember:
    def __init__(self, folder: StepFolder, plan: RunPlan, node: str) -> None:
        self.folder = folder
        self.plan = plan
        self.node = node
        self._began_s = seconds(now_ns())

    @property
    def run(self) -> int:
        return self.plan.run

    def limited(self, policy: Policy) -> Policy:
        """A node that was kept waiting in the runs before does not have the whole time again."""
        waited_s = self.plan.waited_s.get(self.node, 0.0)
        return replace(policy, heal_timeout_s=max(0.0, policy.heal_timeout_s - waited_s))

    def began(
        self, boot_id: str, policy: Policy, counts: Counts, survivors: tuple[ProcessId, ...]
    ) -> SessionBegan:
        return SessionBegan(
            boot_id=boot_id,
            policy=policy,
            counts=counts,
            survivors=survivors,
            run=self.plan.run,
            executions=self.plan.execution - 1,
            why=self.plan.whys[self.node],
        )

    def left(self, leave: Leave, state: SessionState) -> None:
        """The supervisor leaves; ``state`` is its session's."""
        has_run = state.executions >= self.plan.execution
        was_ended = state.cause is EndCause.SIGNALLED or (not state.role.acts and state.signal is not None)
        outcome = NodeOutcome(
            node=self.node,
            run=self.plan.run,
            status=leave.status,
            why=leave.why,
            fault=leave.fault,
            signalled=was_ended and not leave.fault,
            progressed=state.progressed,
            next_why=leave.next_why,
            pause_s=leave.pause_s,
            waited_s=0.0 if has_run else seconds(now_ns()) - self._began_s,
            placements=state.policy.placements,
            counts=state.counts,
        )
        self._put(outcome)

    def not_begun(self, why: str) -> None:
        """What the user has given is wrong."""
        self._put(NodeOutcome(node=self.node, run=self.plan.run, status=ExitStatus.BAD_POLICY.value, why=why))

    def waits_alone(self, status: int, counts: Counts) -> None:
        """The supervisor has a defect, and has only waited for the command."""
        why = "its supervisor has a defect"
        self._put(NodeOutcome(node=self.node, run=self.plan.run, status=status, why=why, counts=counts))

    def _put(self, outcome: NodeOutcome) -> None:
        try:
            self.folder.put_outcome(outcome)
        except OSError as error:
            print_message(
                f"{error.filename}: {error.strerror}; how the run has ended on {self.node} is not known"
            )


def member_of(run: int, state: str, environment: Mapping[str, str]) -> StepMember:
    """Raises ``NoMember``."""
    node = environment.get(NODE_VARIABLE, "")
    if not node:
        raise NoMember(f"--in-step: {NODE_VARIABLE} is not set; let ``job step`` call it, by srun")
    if not state:
        raise NoMember("--in-step: needs --state, a folder that all nodes of the job see")
    folder = StepFolder(Path(state))
    plan = folder.plan(run)
    if plan is None:
        raise NoMember(
            f"--state: {state}: no plan of run {run} is there; name a folder that all nodes of the job see"
        )
    if node not in plan.nodes:
        raise NoMember(f"--in-step: run {run} is made on {', '.join(plan.nodes)}, not on {node}")
    return StepMember(folder, plan, node)


class SharedHangs:
    """``run`` is that of the step."""

    def __init__(self, folder: StepFolder, run: int, node: str) -> None:
        self._folder = folder
        self._run = run
        self._node = node
        self._number = 0
        self._newest = 0
        self._is_broken = False

    def exchanged(self, watch: RunWatch, settings: HangSettings, run: int, now_s: float) -> Sequence[Hung]:
        """What is new of all nodes, for the supervisor's own ``run``. Where this node has found a hang
        itself, that of all adds nothing.
        """
        self._put_hang_report(watch, settings, now_s)
        finding = self._folder.finding(self._run)
        if finding is None or finding.number <= self._newest:
            return ()
        self._newest = finding.number
        if watch.has_confirmed:
            return ()
        return (
            Hung(
                run=run,
                what=finding.what,
                why=finding.why,
                since_s=round(finding.since_s, 3),
                acts=finding.acts,
            ),
        )

    def _put_hang_report(self, watch: RunWatch, settings: HangSettings, now_s: float) -> None:
        seen = watch.seen(now_s)
        self._number += 1
        report = NodeHangReport(
            number=self._number,
            period_s=settings.period_s,
            hang_time_s=settings.hang_time_s,
            flat_s=seen.flat_s,
            idle_high_s=seen.idle_high_s,
            acts=seen.acts,
        )
        try:
            self._folder.put_hang_report(self._run, self._node, report)
            self._is_broken = False
        except OSError as error:
            if not self._is_broken:
                print_message(
                    f"{error.filename}: {error.strerror}; the other nodes do not know how the chips here are"
                )
            self._is_broken = True


class SharedStepTimes:
    """``run`` is that of the step. Nothing is written before a rank has reported a step time."""

    def __init__(self, folder: StepFolder, run: int, node: str) -> None:
        self._folder = folder
        self._run = run
        self._node = node
        self._times: tuple[StepTime, ...] = ()
        self._newest = 0
        self._named: dict[str, BehindRank] = {}
        self._is_broken = False

    def exchanged(self, watch: SlowWatch, times: Sequence[StepTime]) -> Sequence[Slowed]:
        """``times``: those since the last call. What ``job step`` finds of this node, where it is new."""
        if times:
            self._put(times)
        if not self._times:
            return ()
        finding = self._folder.slow(self._run)
        if finding is None or finding.number <= self._newest:
            return ()
        self._newest = finding.number
        ranks = len({each.rank for each in self._times})
        now = {who: behind[0] for who, behind in names(finding, self._node, ranks).items()}
        before, self._named = self._named, now
        ended = [each for who in before.keys() - now.keys() for each in watch.keeps_up(who)]
        found = [each for who in now.keys() - before.keys() for each in watch.placed(who, now[who])]
        return (*ended, *found)

    def _put(self, times: Sequence[StepTime]) -> None:
        self._times = newest_of_each((*self._times, *thinned(times)))
        try:
            self._folder.put_step_times(self._run, self._node, NodeStepTimes(times=self._times))
            self._is_broken = False
        except OSError as error:
            if not self._is_broken:
                print_message(
                    f"{error.filename}: {error.strerror}; slow ranks are only found among those of this node"
                )
            self._is_broken = True
