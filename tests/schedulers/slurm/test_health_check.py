"""The health check between two looks: what it remembers, and what follows."""

from pathlib import Path

import pytest

from nodeagent.schedulers.slurm.decide import SECOND_NS, Node
from nodeagent.schedulers.slurm.health_check import wanted, well_for_s
from nodeagent.schedulers.slurm.verdicts import DrainCause, Standing, Verdicts

FREE = Node(takes_work=True, is_drained=False)
OURS = Node(takes_work=False, is_drained=True, reason="80E18005 npu3 (nodeagent #0)")
OUTDATED = Node(takes_work=False, is_drained=True, reason="NA:80E01801 npu1 (nodeagent)")
ANOTHERS = Node(takes_work=False, is_drained=True, reason="cable is changed")
NUMBERED = Verdicts(standing=Standing.BAD, faults=(DrainCause(device="npu3", code="80E18005", seq=7),))
WITHOUT_NUMBER = Node(takes_work=False, is_drained=True, reason="NA:80E18005 npu3 (nodeagent)")
BAD = Verdicts(standing=Standing.BAD, faults=(DrainCause(device="npu3", code="80E18005"),))
WELL = Verdicts(standing=Standing.WELL)
UNKNOWN = Verdicts(standing=Standing.UNKNOWN)


@pytest.mark.parametrize(
    ("verdicts", "node", "well_s", "order"),
    [
        (BAD, FREE, 0, "NA:80E18005 npu3 (nodeagent)"),
        (BAD, OUTDATED, 0, "NA:80E18005 npu3 (nodeagent)"),
        (BAD, OURS, 0, None),
        (BAD, WITHOUT_NUMBER, 0, None),
        (NUMBERED, WITHOUT_NUMBER, 0, "NA:80E18005 npu3 (nodeagent #7)"),
        (NUMBERED, OURS, 0, None),
        (BAD, ANOTHERS, 0, None),
        (UNKNOWN, FREE, 0, None),
        (UNKNOWN, OURS, 0, None),
        (WELL, FREE, 99, None),
        (WELL, OURS, 59, None),
        (WELL, OURS, 60, ""),
        (WELL, ANOTHERS, 99, None),
    ],
)
def test_what_follows_from_one_look(verdicts: Verdicts, node: Node, well_s: float, order: str | None) -> None:
    assert wanted(verdicts, node, well_s, 60 * SECOND_NS) == order


def test_it_remembers_since_when_the_node_is_well(tmp_path: Path) -> None:
    stamp = tmp_path / "run" / "well-since"
    assert well_for_s(stamp, WELL, 100.0) == 0
    assert well_for_s(stamp, WELL, 130.0) == 30
    assert well_for_s(stamp, UNKNOWN, 140.0) == 0
    assert well_for_s(stamp, WELL, 150.0) == 0
    assert well_for_s(stamp, WELL, 160.0) == 10
    assert well_for_s(stamp, BAD, 170.0) == 0


def test_a_torn_stamp_begins_anew(tmp_path: Path) -> None:
    stamp = tmp_path / "well-since"
    stamp.write_text("")
    assert well_for_s(stamp, WELL, 100.0) == 0
    assert well_for_s(stamp, WELL, 101.0) == 1
