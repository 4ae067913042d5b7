"""Ranks of several nodes: a node that is slow as a whole is found by the loop of the step."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nodeagent.job.sample import StepTime
from nodeagent.job.session.values import Slowed, SlowStage
from nodeagent.job.slow.watch import SlowWatch
from nodeagent.job.step.folder import StepFolder
from nodeagent.job.step.member import SharedStepTimes
from nodeagent.job.step.values import RunPlan
from nodeagent.job.step.whole_job_slow import NodeStepTimes, WholeJobSlow, names, thinned

NODES = ("n1", "n2", "n3", "n4")
RANKS = 8
Share = Callable[[int, int], float]


def times(node: int, first: int, steps: int, share: Share, step_s: float) -> list[StepTime]:
    """Of the ranks of that node; each node has a clock of its own."""
    return [
        StepTime(
            t_s=1e5 * node + step * 2 * step_s,
            step=step,
            compute_s=step_s * share(RANKS * node + index, step),
            rank=RANKS * node + index,
            pid=100 + index,
        )
        for step in range(first, first + steps)
        for index in range(RANKS)
    ]


def played(share: Share, *, step_s: float = 1.0, reports: int = 30) -> list[tuple[int, dict[str, list[int]]]]:
    """(report, ranks by what is named) of each change. A report has the steps of ten seconds."""
    loop = WholeJobSlow()
    steps = round(10 / step_s)
    found = []
    for report in range(reports):
        given = {
            node: NodeStepTimes(times=thinned(times(at, 1 + report * steps, steps, share, step_s)))
            for at, node in enumerate(NODES)
        }
        if finding := loop.received(given):
            named = {
                who: [each.rank for each in behind]
                for node in NODES
                for who, behind in names(finding, node, RANKS).items()
            }
            found.append((report, named))
    return found


@pytest.mark.parametrize("step_s", [10.0, 1.0, 0.05])
def test_one_slow_rank_is_found_among_those_of_all_nodes(step_s: float) -> None:
    slow = played(lambda rank, step: 2.0 if rank == 11 and step * step_s >= 100 else 1.0, step_s=step_s)
    assert [named for _, named in slow] == [{"rank 11": [11]}]


def test_a_node_whose_ranks_are_all_slow_is_named_as_a_node() -> None:
    slow = played(lambda rank, step: 1.8 if rank // RANKS == 2 and step >= 100 else 1.0)
    assert [named for _, named in slow] == [{"node n3": list(range(16, 24))}]


def test_it_keeps_up_again() -> None:
    slow = played(lambda rank, step: 2.0 if rank == 11 and 100 <= step < 150 else 1.0)
    assert [named for _, named in slow] == [{"rank 11": [11]}, {}]


def test_a_healthy_job_has_no_slow_rank() -> None:
    assert played(lambda rank, step: 1 + 0.1 * ((rank * 7 + step * 3) % 5) / 5, reports=360) == []


def test_a_node_reports_its_times_and_learns_that_its_rank_is_slow(tmp_path: Path) -> None:
    folder, loop, watch = StepFolder(tmp_path), WholeJobSlow(), SlowWatch()
    folder.put_plan(RunPlan(run=1, execution=1, nodes=NODES))
    shared = SharedStepTimes(folder, 1, "n2")
    found = list[Slowed]()
    for report in range(30):
        given = {
            node: times(at, 1 + 10 * report, 10, lambda rank, _: 2.0 if rank // RANKS == 1 else 1.0, 1.0)
            for at, node in enumerate(NODES)
        }
        found += shared.exchanged(watch, given["n2"])
        reports = {node: NodeStepTimes(times=tuple(each)) for node, each in given.items() if node != "n2"}
        reports["n2"] = folder.step_times(1, "n2") or NodeStepTimes()
        if finding := loop.received(reports):
            folder.put_slow(1, finding)
    assert [(each.who, each.what) for each in found] == [("node n2", SlowStage.FOUND)]
    assert found[0].evidence["score"] == "0.50"


def test_a_node_whose_program_reports_no_times_writes_nothing(tmp_path: Path) -> None:
    folder = StepFolder(tmp_path)
    folder.put_plan(RunPlan(run=1, execution=1, nodes=NODES))
    assert SharedStepTimes(folder, 1, "n2").exchanged(SlowWatch(), ()) == ()
    assert list((tmp_path / "run-1" / "slow").iterdir()) == []
