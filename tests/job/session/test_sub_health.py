"""A chip of the job becomes sub-healthy: the job stays, or leaves as its strategy has it."""

from dataclasses import replace

import pytest

from nodeagent.job.model import Counts, Policy, RunReport, RunRequest, SubHealthyStrategy, Wish
from nodeagent.job.session.values import Emptied, Print, Progressed, Start
from tests.job.session.play import Play, kinds, only, running

FOUND = "npu3 has 80818C06"
GRACE = Policy(in_place=True, placements=3, sub_health=SubHealthyStrategy.GRACE_EXIT)
FORCE = replace(GRACE, sub_health=SubHealthyStrategy.FORCE_EXIT)


def found(play: Play, sub_health: str = FOUND, wish: Wish = Wish.RUN) -> list[str]:
    return kinds(
        play.give(RunRequest(wish=wish, run=play.run, handling="JOB_STRATEGY", sub_health=sub_health))
    )


@pytest.mark.parametrize(
    "policy",
    [
        Policy(in_place=True, placements=3),
        replace(GRACE, sub_health=SubHealthyStrategy.HOT_SWITCH),
        replace(FORCE, placements=None),
    ],
)
def test_a_job_that_does_not_want_to_leave_or_may_not_is_left_alone(policy: Policy) -> None:
    play = running(policy)
    assert found(play) == []
    assert kinds(play.give(Progressed(run=1, number=7))) == ["KeepCounts"]


def test_at_once() -> None:
    play = running(FORCE)
    assert found(play) == ["Print", "Terminate"]
    orders = play.exited(signal=15)
    report = only(orders, RunReport)
    assert (report.what, report.why) == (
        "stopped",
        "npu3 has 80818C06 (sub-health), and the strategy of the job is forceExit",
    )
    assert (play.left(), play.session.state.counts.placements) == (75, 1)


def test_at_the_next_checkpoint() -> None:
    play = running(GRACE, Counts(best=50))
    assert found(play) == ["Print"]
    assert only(play.orders[-1:], Print).text == (
        "npu3 has 80818C06 (sub-health): the job leaves this node at its next checkpoint (graceExit)"
    )
    assert kinds(play.give(Progressed(run=1, number=60))) == ["KeepCounts", "Print", "Terminate"]
    play.exited(signal=15)
    assert (play.left(), play.session.state.counts.best) == (75, 60)


def test_a_checkpoint_below_the_best_ever_is_one_too() -> None:
    play = running(GRACE, Counts(best=50))
    found(play)
    assert "Terminate" in kinds(play.give(Progressed(run=1, number=40)))


def test_a_step_is_no_checkpoint() -> None:
    play = running(GRACE)
    found(play)
    assert "Terminate" not in kinds(play.give(Progressed(run=1, number=7, is_checkpoint=False)))


def test_what_is_gone_before_the_checkpoint_moves_nobody() -> None:
    play = running(GRACE)
    found(play)
    assert found(play, "") == ["Print"]
    assert "Terminate" not in kinds(play.give(Progressed(run=1, number=7)))


def test_it_is_printed_once() -> None:
    play = running(GRACE)
    assert [found(play), found(play)] == [["Print"], []]


def test_a_run_that_ends_before_its_checkpoint_is_not_made_again_here() -> None:
    play = running(replace(GRACE, in_place_retries=5))
    found(play)
    play.exited(1, error_type="RuntimeError", message="y")
    play.wait(5)
    assert play.left() is None
    play.wait(1)
    found(play)
    assert (play.left(), len(play.starts)) == (75, 1)


def test_another_fault_is_handled_first() -> None:
    """The chip is reset, and may be well after it."""
    play = running(FORCE)
    found(play, wish=Wish.STOP)
    play.exited(signal=15)
    assert play.left() is None
    assert isinstance(
        play.give(RunRequest(wish=Wish.RUN, run=play.run))[-1],
        Start,
    )


def test_one_that_is_done_is_done() -> None:
    play = running(GRACE)
    found(play)
    play.exited(0)
    assert play.left() == 0


@pytest.mark.parametrize("policy", [GRACE, FORCE])
def test_without_a_placement_left_the_job_stays(policy: Policy) -> None:
    play = running(policy, Counts(placements=3))
    assert found(play) == ["Print"]
    assert only(play.orders[-1:], Print).text == (
        "npu3 has 80818C06 (sub-health): the job stays, for all its placements are used"
    )
    assert "Terminate" not in kinds(play.give(Progressed(run=1, number=7)))


def test_in_a_step_the_node_is_left_and_costs_nothing_here() -> None:
    play = running(replace(FORCE, in_step=True))
    found(play)
    play.give(Emptied(run=1))
    leave = play.orders[-1]
    assert (play.left(), play.session.state.counts.placements) == (75, 0)
    assert getattr(leave, "fault", None) is True
