"""Plays the loop of a step by hand: three nodes, and what each of them says at the end of a run."""

from typing import TypeVar

from nodeagent.job.model import Counts
from nodeagent.job.orders import Keep
from nodeagent.job.step.loop import State, decide
from nodeagent.job.step.model import Allocated, Began, Ended, Given, Leave, Order, Outcome, Plan, Run, Wish

T = TypeVar("T", bound=Order)

NODES = ("n1", "n2", "n3")


class Play:
    """``has`` are the nodes that the job has now. ``orders`` are all so far."""

    def __init__(
        self, wish: Wish | None = None, has: tuple[str, ...] = NODES, counts: Counts | None = None
    ) -> None:
        self.state = State()
        self.has = has
        self.orders: list[Order] = []
        self.begun = Began(wish=wish or Wish(reruns=True), nodes=has, first_run=1, counts=counts or Counts())

    def give(self, given: Given) -> list[Order]:
        self.state, orders = decide(self.state, given)
        self.orders += orders
        return list(orders)

    def begin(self) -> list[Order]:
        return [*self.give(self.begun), *self.allow()]

    def allow(self, *, ends: bool = False) -> list[Order]:
        """The scheduler says which nodes the job has."""
        return self.give(Allocated(nodes=self.has, ends=ends))

    def end(self, *said: Outcome, status: int = 137, ends: bool = False) -> list[Order]:
        """The run is over, and these have said how. ``ends``: the scheduler is ending the job."""
        outcomes = {each.node: each for each in said}
        return self.give(
            Ended(run=self.state.run, status=status, outcomes=outcomes, nodes=self.has, ends=ends)
        )

    def outcome(self, node: str, status: int = 0, **more: object) -> Outcome:
        return Outcome(node=node, run=self.state.run, status=status, **more)  # type: ignore[arg-type]

    def peer(self, node: str) -> Outcome:
        """One that was ended because of another."""
        return self.outcome(node, 143, signalled=True)

    @property
    def plans(self) -> list[Plan]:
        return [each.plan for each in self.orders if isinstance(each, Run)]

    @property
    def left(self) -> int | None:
        statuses = [each.status for each in self.orders if isinstance(each, Leave)]
        assert len(statuses) <= 1, "it left twice"
        return statuses[0] if statuses else None

    @property
    def kept(self) -> Counts:
        return [each.counts for each in self.orders if isinstance(each, Keep)][-1]
