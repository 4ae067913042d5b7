"""One node's part in a run of a step: what the plan asks of it, and how the run has ended on it.

It decides nothing: the supervisor of this node does what it does everywhere, and the loop on the batch host
reads what each node has left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from nodeagent.job.inputs import Began, Process
from nodeagent.job.model import Counts, Policy, Status
from nodeagent.job.orders import Leave
from nodeagent.job.session.session_state import Cause, State
from nodeagent.job.shell.clock import now_ns, seconds
from nodeagent.job.shell.messages import print_message
from nodeagent.job.step.folder import Folder
from nodeagent.job.step.model import Outcome, Plan

NODE_VARIABLE: Final = "SLURMD_NODENAME"
"""srun(1), OUTPUT ENVIRONMENT VARIABLES."""


class NoMember(Exception):
    """This process is no part of a step. The text says why, and what to do."""


class Member:
    def __init__(self, folder: Folder, plan: Plan, node: str) -> None:
        self.folder = folder
        self.plan = plan
        self.node = node
        self._began_s = seconds(now_ns())

    @property
    def run(self) -> int:
        return self.plan.run

    def limited(self, policy: Policy) -> Policy:
        """A node that was held in the runs before does not have the whole time again."""
        waited_s = self.plan.waited_s.get(self.node, 0.0)
        return replace(policy, heal_timeout_s=max(0.0, policy.heal_timeout_s - waited_s))

    def began(self, boot_id: str, policy: Policy, counts: Counts, survivors: tuple[Process, ...]) -> Began:
        return Began(
            boot_id=boot_id,
            policy=policy,
            counts=counts,
            survivors=survivors,
            run=self.plan.run,
            executions=self.plan.execution - 1,
            why=self.plan.whys[self.node],
        )

    def left(self, leave: Leave, state: State) -> None:
        """The supervisor leaves; ``state`` is its session's."""
        has_run = state.executions >= self.plan.execution
        was_ended = state.cause is Cause.SIGNALLED or (state.is_watched_only and state.signal is not None)
        outcome = Outcome(
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
        self._put(Outcome(node=self.node, run=self.plan.run, status=Status.BAD_POLICY.value, why=why))

    def waits_alone(self, status: int, counts: Counts) -> None:
        """The supervisor has a defect, and has only waited for the command."""
        why = "its supervisor has a defect"
        self._put(Outcome(node=self.node, run=self.plan.run, status=status, why=why, counts=counts))

    def _put(self, outcome: Outcome) -> None:
        try:
            self.folder.put_outcome(outcome)
        except OSError as error:
            print_message(
                f"{error.filename}: {error.strerror}; how the run has ended on {self.node} is not known"
            )


def member_of(run: int, state: str, environment: Mapping[str, str]) -> Member:
    """Raises ``NoMember``."""
    node = environment.get(NODE_VARIABLE, "")
    if not node:
        raise NoMember(f"--in-step: {NODE_VARIABLE} is not set; let ``job step`` call it, by srun")
    if not state:
        raise NoMember("--in-step: needs --state, a folder that all nodes of the job see")
    folder = Folder(Path(state))
    plan = folder.plan(run)
    if plan is None:
        raise NoMember(
            f"--state: {state}: no plan of run {run} is there; name a folder that all nodes of the job see"
        )
    if node not in plan.nodes:
        raise NoMember(f"--in-step: run {run} is made on {', '.join(plan.nodes)}, not on {node}")
    return Member(folder, plan, node)
