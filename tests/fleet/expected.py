"""Which events the nodes of a cluster have: what a follower is to print in the end."""

from collections.abc import Sequence

from tests.fleet.cluster import Cluster, Machine
from tests.fleet.output import Output
from tests.waiting import WAIT_LIMIT_S, wait_until


class Expected:
    """``last`` is the number of the newest event of each node, ``first`` that with which all begin."""

    def __init__(self, nodes: Cluster, output: Output, first: int = 0) -> None:
        self._nodes = nodes
        self._output = output
        self.last = dict.fromkeys(nodes.names, first)

    def faults(self, each: int, machines: Sequence[Machine] | None = None) -> None:
        """So many of each node of these machines, or of all."""
        self._nodes.order(f"faults {each}", machines)
        for name in self._named(machines):
            self.last[name] += each

    def wait(self, machines: Sequence[Machine] | None = None, limit_s: float = WAIT_LIMIT_S) -> None:
        """Until the newest of each was printed."""
        names = self._named(machines)
        wait_until(
            lambda: all(self._output.read().events[name][-1:] == [self.last[name]] for name in names),
            "events",
            limit_s,
        )

    def _named(self, machines: Sequence[Machine] | None) -> list[str]:
        return self._nodes.names if machines is None else [name for each in machines for name in each.names]
