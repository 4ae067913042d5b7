"""Plays the loop of a step by hand: three nodes, and what each of them says at the end of a run."""

from typing import TypeVar

from nodeagent.job.model import Counts
from nodeagent.job.session.values import KeepCounts, Leave
from nodeagent.job.step.loop import StepState, step
from nodeagent.job.step.values import (
    Allocated,
    NodeOutcome,
    RunPlan,
    StartRun,
    StepBegan,
    StepEffect,
    StepEnded,
    StepInput,
    StepOptions,
)

T = TypeVar("T", bound=StepEffect)

NODES = ("n1", "n2", "n3")


class Play:
    """``has`` are the nodes that the job has now. ``orders`` are all so far."""

    def __init__(
        self, wish: StepOptions | None = None, has: tuple[str, ...] = NODES, counts: Counts | None = None
    ) -> None:
        self.state = StepState()
        self.has = has
        self.orders: list[StepEffect] = []
        self.begun = StepBegan(
            wish=wish or StepOptions(reruns=True), nodes=has, first_run=1, counts=counts or Counts()
        )

    def give(self, given: StepInput) -> list[StepEffect]:
        self.state, orders = step(self.state, given)
        self.orders += orders
        return list(orders)

    def begin(self) -> list[StepEffect]:
        return [*self.give(self.begun), *self.allow()]

    def allow(self, *, ends: bool = False) -> list[StepEffect]:
        """The scheduler says which nodes the job has."""
        return self.give(Allocated(nodes=self.has, ends=ends))

    def end(self, *said: NodeOutcome, status: int = 137, ends: bool = False) -> list[StepEffect]:
        """The run is over, and these have said how. ``ends``: the scheduler is ending the job."""
        outcomes = {each.node: each for each in said}
        return self.give(
            StepEnded(run=self.state.run, status=status, outcomes=outcomes, nodes=self.has, ends=ends)
        )

    def outcome(self, node: str, status: int = 0, **more: object) -> NodeOutcome:
        return NodeOutcome(node=node, run=self.state.run, status=status, **more)  # type: ignore[arg-type]

    def peer(self, node: str) -> NodeOutcome:
        """One that was ended because of another."""
        return self.outcome(node, 143, signalled=True)

    @property
    def plans(self) -> list[RunPlan]:
        return [each.plan for each in self.orders if isinstance(each, StartRun)]

    @property
    def left(self) -> int | None:
        statuses = [each.status for each in self.orders if isinstance(each, Leave)]
        assert len(statuses) <= 1, "it left twice"
        return statuses[0] if statuses else None

    @property
    def kept(self) -> Counts:
        return [each.counts for each in self.orders if isinstance(each, KeepCounts)][-1]
