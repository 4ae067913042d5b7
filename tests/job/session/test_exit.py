"""The command ends by itself: what the daemon knows of it decides, then the table of verdicts."""

from dataclasses import replace

import pytest

from nodeagent.job.model import Counts, Policy, RunReport, RunRequest, Wish
from nodeagent.job.session.state import SessionPhase
from nodeagent.job.session.values import (
    CommandExited,
    Emptied,
    Kill,
    LinkBack,
    LinkLost,
    Progressed,
    RunFailure,
    Signalled,
    Start,
    Terminate,
)
from tests.job.session.play import Play, kinds, only, running

RETRIES = Policy(in_place=True, placements=3, in_place_retries=3)
VALUE_ERROR = """\
Traceback (most recent call last):
  File "train.py", line 7, in <module>
    read_configuration()
ValueError: hidden size 100 is not a multiple of 64
"""


def _run_again(play: Play) -> None:
    play.wait_for_deadline()
    play.allow()
    play.ran()


# ---------------------------------------------------------------------- only watched


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (RunFailure(status=42), 42),
        (RunFailure(signal=11), 139),
        (RunFailure(status=1, tail=VALUE_ERROR), 1),
    ],
)
def test_a_watched_command_ends_at_once_with_its_own_status(failure: RunFailure, status: int) -> None:
    play = Play()
    play.begin()
    play.give(LinkBack(job="x"))
    play.ran()
    orders = play.give(CommandExited(run=1, failure=failure))
    assert kinds(orders) == ["RunReport", "Leave"]
    assert play.left() == status


def test_nothing_that_the_daemon_wants_moves_a_watched_command() -> None:
    play = Play()
    play.begin()
    play.ran()
    play.give(LinkBack(job="x"))
    for wish in Wish:
        assert play.want(wish) == []
    assert play.phase is SessionPhase.RUNNING


def test_a_watched_command_gets_the_signal_and_all_the_time_that_it_takes() -> None:
    play = Play()
    play.begin()
    play.ran()
    assert play.give(Signalled(number=2)) == [Terminate(run=1, number=2, alone=True)]
    play.wait(3600)
    assert play.left() is None
    play.exited(7)
    assert play.left() == 7


def test_a_second_signal_is_the_watched_commands_too() -> None:
    play = Play()
    play.begin()
    play.ran()
    play.give(Signalled(number=15))
    assert play.give(Signalled(number=15)) == [Terminate(run=1, number=15, alone=True)]
    play.exited(6)
    assert play.left() == 6


# ---------------------------------------------------------------------- the daemon's verdict


def test_a_failure_is_judged_once_the_daemon_had_its_time() -> None:
    play = running(RETRIES)
    assert play.exited(1) == []
    assert play.wait(4.9) == []
    orders = play.wait(0.1)
    assert (only(orders, RunReport).what, only(orders, RunReport).status) == ("exited", 1)
    assert (play.phase, play.run) == (SessionPhase.PAUSING, 2)


def test_a_fault_found_within_that_time_decides() -> None:
    play = running(RETRIES)
    play.exited(1)
    orders = play.want(Wish.STOP)
    assert only(orders, RunReport).what == "stopped"
    assert (play.phase, play.session.state.counts.retries) == (SessionPhase.GATE, 0)
    only(play.want(Wish.RUN, run=2), Start)


def test_a_node_that_is_isolated_within_that_time_is_left() -> None:
    play = running(RETRIES)
    play.exited(1)
    play.want(Wish.LEAVE, isolated=True)
    assert play.left() == 86


def test_a_fault_that_was_told_just_before_decides_at_once() -> None:
    play = running(RETRIES)
    play.give(RunRequest(wish=Wish.RUN, run=1, handling="STOP_RESET_RESTART", code="80E18005"))
    play.wait(29)
    play.exited(1, error_type="ValueError", message="the chip gave nonsense")
    assert (play.phase, play.run, play.left()) == (SessionPhase.GATE, 2, None)
    assert (play.session.state.why.value, play.session.state.counts) == ("healed", Counts())


def test_a_fault_that_was_told_long_before_explains_nothing() -> None:
    play = running(RETRIES)
    play.give(RunRequest(wish=Wish.RUN, run=1, handling="STOP_RESET_RESTART"))
    play.wait(31)
    play.exited(1, error_type="ValueError", message="x")
    play.wait(5)
    assert play.left() == 87


def test_the_same_word_said_again_is_no_new_fault() -> None:
    play = running(RETRIES)
    word = RunRequest(wish=Wish.RUN, run=1, handling="STOP_RESET_RESTART")
    play.give(word)
    play.wait(31)
    play.give(LinkLost(why="restarted"))
    play.give(LinkBack(job="x"))
    play.give(word)
    play.exited(1, error_type="ValueError", message="x")
    play.wait(5)
    assert play.left() == 87


def test_a_request_of_a_person_alone_is_no_fault() -> None:
    play = running(RETRIES)
    play.give(RunRequest(wish=Wish.RUN, run=1, handling="RERUN_REQUEST"))
    play.exited(1, error_type="ValueError", message="x")
    play.wait(5)
    assert play.left() == 87


def test_without_a_daemon_no_fault_is_known_after_the_same_time() -> None:
    play = Play(RETRIES)
    play.begin_without_daemon()
    play.ran()
    play.exited(1)
    play.wait(5)
    assert play.phase is SessionPhase.PAUSING
    only(play.wait(1), Start)


def test_a_job_that_needs_the_daemon_waits_for_its_verdict() -> None:
    play = running(Policy(in_place=True, in_place_retries=3, need_daemon=True))
    play.give(LinkLost(why="restarted"))
    play.exited(1)
    play.wait(60)
    assert play.phase is SessionPhase.JUDGING
    play.give(LinkBack(job="x"))
    assert play.want(Wish.STOP) != []
    assert play.session.state.why.value == "healed"


def test_the_scheduler_ends_it_while_the_verdict_is_awaited() -> None:
    play = running(RETRIES)
    play.exited(1)
    play.give(Signalled(number=15))
    assert play.left() == 143
    assert len(play.starts) == 1


# ---------------------------------------------------------------------- what is left of a run


def test_what_a_failed_command_left_behind_ends_before_the_next_run() -> None:
    play = running(RETRIES)
    play.give(CommandExited(run=1, failure=RunFailure(status=1)))
    only(play.wait(5), Terminate)
    only(play.wait(20), Kill)
    orders = play.give(Emptied(run=1))
    assert only(orders, RunReport).what == "exited"
    assert play.phase is SessionPhase.PAUSING


def test_what_a_command_that_is_done_left_behind_goes_on() -> None:
    play = running(RETRIES)
    assert kinds(play.give(CommandExited(run=1, failure=RunFailure(status=0)))) == ["RunReport", "Leave"]
    assert play.left() == 0


def test_no_run_begins_on_a_chip_that_a_process_still_holds() -> None:
    play = running(RETRIES)
    play.give(CommandExited(run=1, failure=RunFailure(status=1)))
    play.wait(5 + 20 + 5)
    assert play.left() == 86
    assert len(play.starts) == 1


def test_a_run_that_vanished_has_failed() -> None:
    play = running(RETRIES)
    play.give(Emptied(run=1))
    play.wait(5)
    assert (play.phase, play.run) == (SessionPhase.PAUSING, 2)


# ---------------------------------------------------------------------- the table of verdicts, run by run


def test_a_value_error_in_the_configuration_is_run_once_and_its_line_is_told() -> None:
    play = running(RETRIES)
    play.exited(1, tail=VALUE_ERROR)
    orders = play.wait(5)
    assert play.left() == 87
    assert len(play.starts) == 1
    report = only(orders, RunReport)
    assert report.evidence == {"class": "user", "line": "ValueError: hidden size 100 is not a multiple of 64"}
    assert report.why == "an error of the job itself: ValueError: hidden size 100 is not a multiple of 64"


def test_the_same_error_after_progress_is_tried_again() -> None:
    play = running(RETRIES)
    play.give(Progressed(run=1, number=100))
    play.exited(1, tail=VALUE_ERROR)
    play.wait(5)
    assert (play.left(), play.run) == (None, 2)


def test_the_same_unknown_failure_four_times_in_a_row_is_given_up() -> None:
    play = running(replace(RETRIES, in_place_retries=10))
    for _ in range(4):
        play.exited(1, error_type="RuntimeError", message="no such layer")
        play.wait(5)
        if play.left() is None:
            _run_again(play)
    assert play.left() == 87
    assert len(play.starts) == 4


def test_retries_follow_after_one_two_and_four_seconds_and_then_it_is_given_up() -> None:
    play = running(RETRIES)
    begun_s = []
    for number in range(4):
        play.exited(1, error_type="RuntimeError", message=f"failure {'abcd'[number]}")
        play.wait(5)
        ended_s = play.now_s
        if play.left() is None:
            _run_again(play)
            begun_s.append(play.now_s - ended_s)
    assert begun_s == [1, 2, 4]
    assert play.left() == 87


def test_progress_gives_all_retries_back() -> None:
    play = running(RETRIES, counts=Counts(retries=3, best=100))
    play.give(Progressed(run=1, number=101))
    play.exited(1)
    play.wait(5)
    assert (play.left(), play.session.state.counts) == (None, Counts(retries=1, best=101))


def test_running_up_to_the_old_best_again_is_no_progress() -> None:
    play = running(RETRIES, counts=Counts(retries=3, best=100))
    assert play.give(Progressed(run=1, number=100)) == []
    play.exited(1)
    play.wait(5)
    assert play.left() == 87


def test_progress_after_the_run_was_asked_to_end_counts() -> None:
    """Many programs write a checkpoint when they are asked to end; one half written is never given."""
    play = running(RETRIES, counts=Counts(best=100))
    play.want(Wish.STOP)
    play.give(Progressed(run=1, number=200))
    assert play.session.state.counts.best == 200


def test_progress_gives_placements_back_only_where_that_is_wanted() -> None:
    spent = Counts(placements=3, placements_in_row=3, best=1)
    for refill, placements in ((False, 3), (True, 0)):
        play = running(Policy(placements=3, refill=refill), spent)
        play.give(Progressed(run=1, number=2))
        assert play.session.state.counts == Counts(placements=placements, placements_in_row=0, best=2)


def test_counts_are_kept_before_it_leaves() -> None:
    play = running(Policy(placements=3, unconditional=True))
    play.exited(1)
    assert kinds(play.wait(5)) == ["RunReport", "KeepCounts", "Print", "Leave"]
    assert (play.left(), play.session.state.counts.placements_in_row) == (75, 1)
