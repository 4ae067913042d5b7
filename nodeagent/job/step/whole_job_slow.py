"""Which ranks, or nodes, hold up a job on many nodes: the step times of each node in, findings out. Pure.

One supervisor sees the ranks of one node, which may all be slow alike. So the loop compares the ranks of all
nodes by the same rules. It reports what it finds, and nothing is stopped.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nodeagent.job.sample import StepTime
from nodeagent.job.slow.step_times import BehindRank, StepTimes

LATE_STEPS: Final = 64
"""Reports of nodes come in turn, each with the steps of some seconds."""

LEAST_SHARE: Final = 0.7
"""So many of all ranks have to be there in a step, or the ranks of one node would be compared alone."""

KEPT_OF_RANK: Final = 32
NEW_OF_RANK: Final = 8
"""So many times of a rank are in a report, and so many at most are added with one sample. Of a program with
short steps, each second, fourth or eighth step is: the same ones on all nodes.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStepTimes:
    """The newest step times of the ranks of one node."""

    times: tuple[StepTime, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSlowFinding:
    """All ranks that are slow now; ``place`` of each is its node. ``number`` grows by one with each."""

    number: int
    slow: tuple[BehindRank, ...] = ()


def thinned(times: Sequence[StepTime]) -> tuple[StepTime, ...]:
    """At most ``NEW_OF_RANK`` of each rank."""
    most = max(Counter(each.rank for each in times).values(), default=0)
    each_step = 1
    while most > NEW_OF_RANK * each_step:
        each_step *= 2
    return tuple(each for each in times if each.step % each_step == 0)


def newest_of_each(times: tuple[StepTime, ...]) -> tuple[StepTime, ...]:
    """Without the older ones of ranks that have more than are kept; in their order."""
    left: dict[int, int] = {}
    kept = list[StepTime]()
    for each in reversed(times):
        left[each.rank] = left.get(each.rank, 0) + 1
        if left[each.rank] <= KEPT_OF_RANK:
            kept.append(each)
    return tuple(reversed(kept))


class WholeJobSlow:
    """The reports of all nodes on one run, one after another."""

    def __init__(self) -> None:
        self._times = StepTimes(LATE_STEPS, LEAST_SHARE)
        self._taken: dict[tuple[str, int], tuple[int, int]] = {}
        self._slow: dict[int, BehindRank] = {}
        self._number = 0

    def received(self, reports: Mapping[str, NodeStepTimes]) -> JobSlowFinding | None:
        """``reports`` are those that can be read, by node. None: nothing has changed."""
        before = dict(self._slow)
        for node, time in self._new(reports):
            found = self._times.given(time, node)
            for rank in found.even:
                self._slow.pop(rank, None)
            self._slow |= {each.rank: each for each in found.behind}
        if self._slow.keys() == before.keys():
            return None
        self._number += 1
        return JobSlowFinding(
            number=self._number, slow=tuple(self._slow[each] for each in sorted(self._slow))
        )

    def _new(self, reports: Mapping[str, NodeStepTimes]) -> list[tuple[str, StepTime]]:
        """Those that were not taken before, by their steps."""
        new = list[tuple[str, StepTime]]()
        for node, report in reports.items():
            for time in report.times:
                key, value = (node, time.rank), (time.pid, time.step)
                pid, step = self._taken.get(key, (0, -1))
                if time.pid != pid or time.step > step:
                    self._taken[key] = value
                    new.append((node, time))
        return sorted(new, key=lambda each: each[1].step)


def names(finding: JobSlowFinding, node: str, ranks: int) -> Mapping[str, tuple[BehindRank, ...]]:
    """What holds up the others on this node, which has so many ranks: ranks, or the node as a whole."""
    own = tuple(each for each in finding.slow if each.place == node)
    if len(own) > 1 and 2 * len(own) > ranks:
        return {f"node {node}": own}
    return {f"rank {each.rank}": (each,) for each in own}
