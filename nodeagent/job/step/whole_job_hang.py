"""Whether a job on many nodes hangs as a whole: each node's report on its chips in, a finding out. Pure.

One supervisor sees one node, and a rank may poll while it waits for ever. So the loop looks at all nodes:
every chip on every node flat for the hang time is reported. It acts only where every chip is flat and, by its
own numbers, in use, while its power or its traffic shows no work. A node without a new report is unknown,
and never quiet.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nodeagent.job.session.values import HangStage

STALE_PERIODS: Final = 9
"""An older report is none. The files of another node may be seen a minute late: nfs(5), acdirmax."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeHangReport:
    """What a node's own watch has seen, up to its sample ``number``.

    ``flat_s``: how long every chip of the node has been flat; ``idle_high_s``: and in use without any sign of
    work. ``acts``: the policy stops a run that hangs, and the run is armed.
    """

    number: int
    period_s: float
    hang_time_s: float
    flat_s: float = 0.0
    idle_high_s: float = 0.0
    acts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobHangFinding:
    """What the loop reports to all nodes of a run; ``number`` grows by one with each."""

    number: int
    what: HangStage
    why: str
    since_s: float
    acts: bool = False


class WholeJobHang:
    """The reports of all nodes on one run, one sample after another."""

    def __init__(self, nodes: Sequence[str]) -> None:
        self._nodes = tuple(nodes)
        self._newest: dict[str, tuple[int, float]] = {}
        self._announced: JobHangFinding | None = None
        self._number = 0

    def received(self, reports: Mapping[str, NodeHangReport], now_s: float) -> JobHangFinding | None:
        """``reports`` are those that can be read. What is new to report; None: nothing."""
        fresh = [report for node in self._nodes if (report := self._fresh(node, reports, now_s)) is not None]
        if len(fresh) < len(self._nodes):
            return self._ended(HangStage.DROPPED, "not every node reports its chips")
        acting = min(_share(each.idle_high_s, each) for each in fresh)
        flat = min(_share(each.flat_s, each) for each in fresh)
        since_s = min(each.flat_s for each in fresh)
        if acting >= 1 and all(each.acts for each in fresh):
            return self._found("without any sign of work", min(each.idle_high_s for each in fresh), acts=True)
        if flat >= 1:
            return self._found("flat", since_s, acts=False)
        return self._ended(HangStage.CLEARED, "the chips of a node are not flat any more")

    def _fresh(self, node: str, reports: Mapping[str, NodeHangReport], now_s: float) -> NodeHangReport | None:
        report = reports.get(node)
        if report is None:
            return None
        number, since_s = self._newest.get(node, (-1, now_s))
        if report.number != number:
            self._newest[node] = (report.number, now_s)
            return report
        return report if now_s - since_s <= STALE_PERIODS * report.period_s else None

    def _found(self, what: str, since_s: float, *, acts: bool) -> JobHangFinding | None:
        announced = self._announced
        if announced is not None and (announced.acts or not acts):
            return None
        why = f"every chip on {len(self._nodes)} nodes is {what}"
        return self._announce(HangStage.CONFIRMED, why, since_s, acts=acts)

    def _ended(self, what: HangStage, why: str) -> JobHangFinding | None:
        if self._announced is None:
            return None
        finding = self._announce(what, why, 0.0, acts=False)
        self._announced = None
        return finding

    def _announce(self, what: HangStage, why: str, since_s: float, *, acts: bool) -> JobHangFinding:
        self._number += 1
        self._announced = JobHangFinding(number=self._number, what=what, why=why, since_s=since_s, acts=acts)
        return self._announced


def _share(seconds: float, report: NodeHangReport) -> float:
    return seconds / report.hang_time_s
