"""One node of a step: what ends it while another node fails, and what the others are told."""

import pytest

from nodeagent.job.model import Counts, HangMode, Policy, RunReason, RunRequest, Wish
from nodeagent.job.session.values import (
    CommandExited,
    Emptied,
    Gathered,
    HangStage,
    Hung,
    Kill,
    Leave,
    LinkLost,
    ProcessId,
    RunFailure,
    SessionBegan,
    Signalled,
    Start,
    Terminate,
)
from tests.job.session.play import BOOT_ID, Play, only, running

IN_STEP = Policy(in_step=True, in_place=True, in_place_retries=2, hang=HangMode.RESTART)
TERM = Signalled(number=15)
INT = Signalled(number=2)


def _leave(play: Play) -> Leave:
    return only(play.orders, Leave)


def test_one_that_is_ended_for_another_has_nothing_to_say() -> None:
    play = running(IN_STEP)
    play.give(TERM)
    play.exited(signal=15)
    assert (_leave(play).status, _leave(play).fault) == (143, False)


def test_a_stop_for_a_fault_stays_one_when_the_step_is_ended_meanwhile() -> None:
    """Others have failed because this one stops."""
    play = running(IN_STEP)
    play.want(Wish.STOP)
    play.give(TERM)
    play.exited(signal=15)
    assert (_leave(play).status, _leave(play).fault, _leave(play).next_why) == (85, True, RunReason.HEALED)


def test_a_stop_for_a_hang_stays_one_when_the_step_is_ended_meanwhile() -> None:
    play = running(IN_STEP)
    play.give(Hung(run=1, what=HangStage.CONFIRMED, why="quiet", since_s=1800))
    play.give(Gathered(run=1, path="/e"))
    play.give(TERM)
    play.exited(signal=15)
    assert (_leave(play).status, _leave(play).fault, _leave(play).next_why) == (
        85,
        False,
        RunReason.SUSPENDED,
    )


def test_a_fault_that_is_found_while_the_step_is_ended_is_told() -> None:
    play = running(IN_STEP)
    play.give(TERM)
    play.want(Wish.LEAVE, isolated=True)
    play.exited(signal=15)
    assert (_leave(play).status, _leave(play).fault) == (86, True)


def test_a_fault_that_was_told_just_before_explains_the_end_of_the_step() -> None:
    play = running(Policy(in_step=True, in_place=True))
    play.give(RunRequest(wish=Wish.RUN, run=1, handling="STOP_RESET_RESTART"))
    play.give(TERM, 20)
    play.exited(signal=15)
    assert (_leave(play).status, _leave(play).fault) == (85, True)


def test_a_fault_that_was_told_long_ago_explains_nothing() -> None:
    play = running(IN_STEP)
    play.give(RunRequest(wish=Wish.RUN, run=1, handling="STOP_RESET_RESTART"))
    play.give(TERM, 31)
    play.exited(signal=15)
    assert (_leave(play).status, _leave(play).fault) == (143, False)


def test_its_own_failure_stands_when_the_step_is_ended_while_it_is_judged() -> None:
    play = running(IN_STEP)
    play.give(CommandExited(run=1, failure=RunFailure(status=1, error_type="ValueError", message="x")))
    play.give(TERM)
    play.give(Emptied(run=1))
    assert (_leave(play).status, _leave(play).fault) == (87, False)


def test_one_that_is_held_when_the_step_is_ended_says_that_it_was() -> None:
    """The others could not go on without it."""
    play = Play(IN_STEP)
    play.begin()
    play.want(Wish.HOLD)
    play.give(TERM, 300)
    assert (_leave(play).status, _leave(play).fault, _leave(play).next_why) == (85, True, RunReason.HEALED)


def test_one_that_is_not_held_has_nothing_to_say_at_the_gate() -> None:
    play = Play(IN_STEP)
    play.begin()
    play.give(TERM)
    assert (_leave(play).status, _leave(play).fault) == (143, False)


def test_a_retry_is_for_all_nodes_after_its_pause() -> None:
    play = running(IN_STEP)
    play.exited(1, error_type="RuntimeError", message="x")
    play.wait(5)
    assert (_leave(play).status, _leave(play).pause_s, _leave(play).fault) == (85, 1.0, False)
    assert play.session.state.counts.retries == 1


@pytest.mark.parametrize("isolated", [True, False])
def test_leaving_a_node_of_a_step_costs_no_placement(isolated: bool) -> None:
    """A spare may take its place."""
    play = running(Policy(in_step=True, in_place=True, placements=1))
    play.want(Wish.LEAVE, isolated=isolated)
    play.exited(signal=15)
    assert (_leave(play).status, play.session.state.counts) == (86 if isolated else 75, Counts())


def test_what_is_left_of_a_run_before_is_ended_and_the_run_is_made() -> None:
    play = Play(IN_STEP)
    play.give(
        SessionBegan(
            boot_id=BOOT_ID,
            policy=IN_STEP,
            counts=Counts(),
            survivors=(ProcessId(pid=9, start_time=1),),
            run=4,
            executions=3,
            why=RunReason.PEER,
        )
    )
    play.give(LinkLost(why="no daemon"))
    start = only(play.give(Emptied(run=3)), Start)
    found = {
        name: start.environment[name] for name in ("NODEAGENT_RUN", "MA_PROC_START_CNT", "NODEAGENT_WHY")
    }
    assert found == {"NODEAGENT_RUN": "4", "MA_PROC_START_CNT": "4", "NODEAGENT_WHY": "peer"}


def test_slurm_and_the_loop_both_tell_of_the_end_and_the_command_keeps_its_grace() -> None:
    play = running(IN_STEP)
    play.give(TERM)
    play.give(INT)
    assert [each for each in play.orders if isinstance(each, Kill)] == []


def test_a_command_that_is_only_watched_is_told_once_and_by_term() -> None:
    """Whoever tells first: Slurm or, by INT, the loop."""
    play = running(Policy(in_step=True))
    play.give(INT)
    play.give(TERM)
    sent = [each for each in play.orders if isinstance(each, Terminate)]
    assert sent == [Terminate(run=1, alone=True)]
