"""The rule of hangs for all nodes at once."""

from dataclasses import replace

import pytest

from nodeagent.job.session.values import HangStage
from nodeagent.job.step.whole_job_hang import JobHangFinding, NodeHangReport, WholeJobHang

T_S = 1800.0
BUSY = NodeHangReport(number=1, period_s=10.0, hang_time_s=T_S, acts=True)
FLAT = replace(BUSY, flat_s=T_S)
HIGH = replace(FLAT, idle_high_s=T_S)


def _found(finding: JobHangFinding | None) -> tuple[HangStage, bool] | None:
    return None if finding is None else (finding.what, finding.acts)


def test_every_chip_flat_on_every_node_is_told_and_never_acted_on() -> None:
    assert _found(WholeJobHang(("n1", "n2")).received({"n1": FLAT, "n2": FLAT}, 0.0)) == (
        HangStage.CONFIRMED,
        False,
    )


def test_every_chip_without_any_sign_of_work_is_acted_on() -> None:
    assert _found(WholeJobHang(("n1", "n2")).received({"n1": HIGH, "n2": HIGH}, 0.0)) == (
        HangStage.CONFIRMED,
        True,
    )


def test_one_node_whose_policy_does_not_act_keeps_all_from_it() -> None:
    mild = replace(HIGH, acts=False)
    assert _found(WholeJobHang(("n1", "n2")).received({"n1": HIGH, "n2": mild}, 0.0)) == (
        HangStage.CONFIRMED,
        False,
    )


@pytest.mark.parametrize("other", [BUSY, replace(FLAT, flat_s=T_S - 1)])
def test_one_node_that_works_is_no_hang_of_all(other: NodeHangReport) -> None:
    assert WholeJobHang(("n1", "n2")).received({"n1": HIGH, "n2": other}, 0.0) is None


def test_a_node_that_says_nothing_is_no_quiet_one() -> None:
    assert WholeJobHang(("n1", "n2")).received({"n1": HIGH}, 0.0) is None


def test_a_word_that_is_never_renewed_becomes_unknown() -> None:
    together = WholeJobHang(("n1",))
    together.received({"n1": BUSY}, 0.0)
    late = replace(BUSY, flat_s=T_S)  # the number of its sample is the old one
    assert _found(together.received({"n1": late}, 90.0)) == (HangStage.CONFIRMED, False)
    assert _found(together.received({"n1": late}, 91.0)) == (HangStage.DROPPED, False)


def test_each_finding_is_told_once_and_has_an_end() -> None:
    together = WholeJobHang(("n1",))
    words = [FLAT, FLAT, HIGH, HIGH, BUSY, BUSY, FLAT]
    found = [together.received({"n1": replace(each, number=at)}, at * 10.0) for at, each in enumerate(words)]
    assert [_found(each) for each in found] == [
        (HangStage.CONFIRMED, False),
        None,
        (HangStage.CONFIRMED, True),
        None,
        (HangStage.CLEARED, False),
        None,
        (HangStage.CONFIRMED, False),
    ]
    assert [each.number for each in found if each is not None] == [1, 2, 3, 4]
