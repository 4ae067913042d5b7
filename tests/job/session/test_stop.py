"""A run is stopped: by the daemon, by the scheduler; and what does not obey."""

import signal

import pytest

from nodeagent.job.model import SECOND_NS, ExitStatus, Policy, RunReport, Wish
from nodeagent.job.session.state import SessionPhase
from nodeagent.job.session.values import (
    CommandExited,
    Emptied,
    Kill,
    LinkBack,
    RunFailure,
    Signalled,
    Start,
    Terminate,
)
from tests.job.session.play import Play, kinds, only, running

IN_PLACE = Policy(in_place=True, placements=3, grace_s=20.0)


def test_a_run_begins_once_the_daemon_wants_it_and_leaves_with_the_status_of_its_command() -> None:
    play = Play(IN_PLACE)
    assert play.begin() == []
    assert play.give(LinkBack(job="slurm:7.0")) == []
    assert play.want(Wish.HOLD) == []
    start = only(play.want(Wish.RUN), Start)
    assert (start.run, start.environment["MA_PROC_START_CNT"]) == (1, "1")
    assert only(play.ran(), RunReport).what == "started"
    assert kinds(play.exited(0)) == ["RunReport", "Leave"]
    assert play.left() == 0


def test_asked_to_stop_it_ends_waits_and_runs_again_when_it_may() -> None:
    play = running(IN_PLACE)
    assert kinds(play.want(Wish.STOP)) == ["Print", "Terminate"]
    orders = play.exited(signal=signal.SIGTERM)
    assert only(orders, RunReport).what == "stopped"
    assert play.phase is SessionPhase.GATE
    assert play.want(Wish.HOLD, run=2) == []
    start = only(play.want(Wish.RUN, run=2), Start)
    assert (start.environment["MA_PROC_START_CNT"], start.environment["NODEAGENT_WHY"]) == ("2", "healed")


def test_what_ignores_the_request_is_killed_after_its_grace() -> None:
    play = running(IN_PLACE)
    play.want(Wish.STOP)
    assert play.wait(19.9) == []
    assert kinds(play.wait(0.1)) == ["Kill"]
    assert only(play.give(Emptied(run=1)), RunReport).what == "stopped"
    assert play.phase is SessionPhase.GATE


def test_what_cannot_be_killed_is_told_and_leaves_the_node() -> None:
    play = running(IN_PLACE)
    play.want(Wish.STOP)
    play.wait(20)
    orders = play.wait(5)
    assert only(orders, RunReport).what == "unkillable"
    assert play.left() == ExitStatus.RESCHEDULE_ISOLATED
    assert len(play.starts) == 1


def test_what_ended_while_the_supervisor_slept_could_be_killed() -> None:
    """The machine was suspended, or a disk did not answer."""
    play = running(IN_PLACE)
    play.want(Wish.STOP)
    play.wait(20)
    assert play.phase is SessionPhase.KILLING
    orders = play.session.step(3600 * SECOND_NS, Emptied(run=1))
    assert only(list(orders), RunReport).what == "stopped"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_the_scheduler_ends_it_and_it_never_runs_again(number: int, status: int) -> None:
    play = running(IN_PLACE)
    assert kinds(play.give(Signalled(number=number))) == ["Terminate"]
    play.exited(0)
    assert play.left() == status
    assert len(play.starts) == 1


@pytest.mark.parametrize("wish", [Wish.STOP, Wish.LEAVE])
def test_the_schedulers_word_is_above_the_daemons(wish: Wish) -> None:
    play = running(IN_PLACE)
    play.give(Signalled(number=signal.SIGTERM))
    assert play.want(wish, isolated=True) == []
    play.exited(signal=signal.SIGTERM)
    assert play.left() == 143
    assert len(play.starts) == 1


def test_the_scheduler_may_end_what_the_daemon_has_stopped() -> None:
    play = running(IN_PLACE)
    play.want(Wish.STOP)
    assert play.give(Signalled(number=signal.SIGTERM)) == []
    play.exited(signal=signal.SIGTERM)
    assert play.left() == 143


def test_a_node_that_must_be_left_while_the_run_stops_is_left() -> None:
    play = running(IN_PLACE)
    play.want(Wish.STOP)
    play.want(Wish.LEAVE, isolated=True)
    orders = play.exited(signal=signal.SIGTERM)
    assert only(orders, RunReport).what == "stopped"
    assert play.left() == ExitStatus.RESCHEDULE_ISOLATED


def test_a_second_signal_kills_at_once() -> None:
    play = running(IN_PLACE)
    only(play.give(Signalled(number=signal.SIGTERM)), Terminate)
    only(play.give(Signalled(number=signal.SIGTERM), 0.1), Kill)
    play.give(CommandExited(run=1, failure=RunFailure(signal=signal.SIGKILL)))
    assert play.left() is None
    play.give(Emptied(run=1))
    assert play.left() == 143
