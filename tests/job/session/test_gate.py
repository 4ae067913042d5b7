"""Before a run: who may begin it, and how long is waited.

The variables of a run.
"""

import errno

import pytest

from nodeagent.job.model import (
    Counts,
    ExitStatus,
    Policy,
    RunReason,
    RunReport,
    RunRequest,
    Wish,
    variables_of_run,
)
from nodeagent.job.session.state import SessionPhase
from nodeagent.job.session.values import (
    CalledOff,
    LinkBack,
    LinkLost,
    NotRun,
    Print,
    RunNotReady,
    Signalled,
    Start,
    Terminate,
)
from tests.job.session.play import Play, kinds, only

IN_PLACE = Policy(in_place=True, placements=3)


def _at_gate(policy: Policy = IN_PLACE, counts: Counts | None = None) -> Play:
    play = Play(policy, counts)
    play.begin()
    return play


def test_a_job_that_is_only_watched_begins_at_once() -> None:
    assert kinds(Play().begin()) == ["Start"]


def test_nothing_begins_before_it_is_known_whether_the_daemon_answers() -> None:
    play = _at_gate()
    assert play.wait(1) == []
    assert play.phase is SessionPhase.GATE


def test_without_a_daemon_the_gate_is_open() -> None:
    only(_at_gate().give(LinkLost(why="no such file")), Start)


def test_a_job_that_needs_the_daemon_waits_for_it() -> None:
    play = _at_gate(Policy(need_daemon=True))
    assert play.give(LinkLost(why="no such file")) == []
    assert play.give(LinkBack(job="x"), 30) == []
    only(play.allow(), Start)


def test_a_job_that_needs_the_daemon_does_not_wait_for_ever() -> None:
    play = _at_gate(Policy(need_daemon=True, heal_timeout_s=600))
    play.give(LinkLost(why="no such file"))
    play.wait(599)
    assert play.left() is None
    play.wait(1)
    assert play.left() == 86
    assert play.starts == []


def test_a_node_that_is_not_well_holds_the_first_run() -> None:
    play = _at_gate()
    play.give(LinkBack(job="x"))
    assert play.want(Wish.HOLD) == []
    play.wait(600)
    assert play.left() == 86
    assert play.session.state.counts.placements == 1


def test_what_was_held_is_held_while_the_daemon_is_away() -> None:
    play = _at_gate()
    play.give(LinkBack(job="x"))
    play.want(Wish.HOLD)
    assert play.give(LinkLost(why="restarted"), 100) == []
    assert play.give(LinkBack(job="x"), 100) == []
    only(play.allow(), Start)


def test_an_old_word_does_not_open_the_gate_for_the_next_run() -> None:
    play = _at_gate(Policy(in_place=True, in_place_retries=3, verdict_wait_s=0))
    play.give(LinkBack(job="x"))
    play.allow()
    play.ran()
    play.exited(1)
    play.wait(2)
    assert (play.phase, play.run) == (SessionPhase.GATE, 2)
    assert play.want(Wish.RUN, run=1) == []
    only(play.want(Wish.RUN, run=2), Start)


def test_a_daemon_that_comes_back_must_say_it_anew() -> None:
    play = _at_gate(Policy(in_place=True, in_place_retries=3, verdict_wait_s=0))
    play.give(LinkBack(job="x"))
    play.allow()
    play.ran()
    play.exited(1)
    play.want(Wish.RUN, run=2)
    play.give(LinkLost(why="restarted"))
    play.give(LinkBack(job="x"))
    play.wait(2)
    assert play.phase is SessionPhase.GATE
    only(play.want(Wish.RUN, run=2), Start)


@pytest.mark.parametrize(("isolated", "status"), [(True, 86), (False, 75)])
def test_a_job_is_sent_away_before_it_ever_ran(isolated: bool, status: int) -> None:
    play = _at_gate()
    play.give(LinkBack(job="x"))
    assert kinds(play.want(Wish.LEAVE, isolated=isolated)) == ["KeepCounts", "Print", "Leave"]
    assert play.left() == status


def test_why_it_is_sent_away_is_printed() -> None:
    play = _at_gate()
    play.give(LinkBack(job="x"))
    why = "npu3: 80E18005 at RestartNPU; its reset does not begin: npu6 is used by tool (pid 99)"
    request = RunRequest(wish=Wish.LEAVE, run=1, isolated=True, why=why)
    (printed,) = [each for each in play.give(request) if isinstance(each, Print)]
    assert printed.text == f"leaves with status 86: the node, or a chip of the job, is isolated: {why}"


def test_a_run_that_is_stopped_before_it_began_is_told_and_waits() -> None:
    """A fault is found during the pause before a retry, which the daemon had allowed already."""
    play = Play(Policy(in_place=True, in_place_retries=3, verdict_wait_s=0))
    play.begin_with_daemon()
    play.ran()
    play.exited(1)
    play.want(Wish.RUN, run=2)
    report = only(play.want(Wish.STOP, run=2), RunReport)
    assert (report.run, report.what) == (2, "stopped")
    assert play.want(Wish.STOP, run=2) == []
    assert play.wait(10) == []
    start = only(play.want(Wish.RUN, run=3), Start)
    assert (start.run, start.environment["MA_PROC_START_CNT"]) == (3, "2")
    assert start.environment["NODEAGENT_WHY"] == "healed"


def test_needing_the_daemon_alone_changes_no_status() -> None:
    play = Play(Policy(need_daemon=True))
    play.begin_with_daemon()
    play.ran()
    play.exited(1, error_type="ValueError", message="x")
    assert play.left() == 1


def test_what_an_operator_has_stopped_waits_for_the_operator() -> None:
    play = Play(IN_PLACE)
    play.begin_with_daemon()
    play.ran()
    play.give(RunRequest(wish=Wish.STOP, run=1, by_operator=True))
    play.exited(signal=15)
    play.give(RunRequest(wish=Wish.HOLD, run=2, by_operator=True))
    play.wait(7 * 24 * 3600)
    assert (play.left(), play.phase) == (None, SessionPhase.GATE)
    start = only(play.give(RunRequest(wish=Wish.RUN, run=2)), Start)
    assert start.environment["NODEAGENT_WHY"] == "ordered"


def test_after_the_operators_hold_the_time_for_healing_begins_anew() -> None:
    play = _at_gate()
    play.give(LinkBack(job="x"))
    play.give(RunRequest(wish=Wish.HOLD, run=1, by_operator=True))
    play.give(RunRequest(wish=Wish.HOLD, run=1), 5000)
    play.wait(599)
    assert play.left() is None
    play.wait(1)
    assert play.left() == 86


def test_the_scheduler_ends_it_while_it_waits() -> None:
    play = _at_gate()
    assert kinds(play.give(Signalled(number=15))) == ["Leave"]
    assert play.left() == 143


@pytest.mark.parametrize(("error", "status"), [(2, 127), (20, 127), (13, 126), (8, 126)])
def test_a_command_that_cannot_be_run_ends_as_a_shell_ends(error: int, status: int) -> None:
    play = Play(IN_PLACE)
    play.begin_without_daemon()
    orders = play.give(NotRun(run=1, error=error, why="no such file: trian.py"))
    assert only(orders, RunReport).status == status
    assert play.left() == status


def test_a_run_is_told_which_placement_it_is() -> None:
    play = _at_gate(counts=Counts(schedule=3, placements=2))
    play.give(LinkBack(job="slurm:7.0"))
    assert only(play.allow(), Start).environment == {
        "MA_PROC_START_CNT": "1",
        "MA_SCHEDULE_CNT": "3",
        "NODEAGENT_JOB": "slurm:7.0",
        "NODEAGENT_RUN": "1",
        "NODEAGENT_WHY": "first",
    }


def test_a_command_that_cannot_be_begun_for_a_while_is_begun_again() -> None:
    play = Play(Policy(in_place_retries=1))
    play.begin_without_daemon()

    play.give(NotRun(run=1, error=errno.EAGAIN, why="Resource temporarily unavailable"))
    play.wait_for_deadline()

    assert [each["NODEAGENT_RUN"] for each in play.starts] == ["1", "2"]
    assert play.left() is None
    play.give(NotRun(run=2, error=errno.EAGAIN, why="Resource temporarily unavailable"))
    assert play.left() == ExitStatus.GIVEN_UP


def test_a_watched_command_that_cannot_be_begun_for_a_while_gives_the_status_of_a_shell() -> None:
    play = Play()
    play.begin_without_daemon()
    play.give(NotRun(run=1, error=errno.EAGAIN, why="Resource temporarily unavailable"))
    assert play.left() == 126


def test_a_run_is_told_which_it_is_and_why() -> None:
    assert variables_of_run(
        run=3, execution=2, why=RunReason.HEALED, counts=Counts(schedule=3), job="slurm:7.0"
    ) == {
        "MA_PROC_START_CNT": "2",
        "MA_SCHEDULE_CNT": "3",
        "NODEAGENT_RUN": "3",
        "NODEAGENT_WHY": "healed",
        "NODEAGENT_JOB": "slurm:7.0",
    }


def test_a_job_that_nobody_named_has_no_name() -> None:
    assert "NODEAGENT_JOB" not in variables_of_run(run=1, execution=1, why=RunReason.FIRST, counts=Counts())


# ---------------------------------------------------------------------- what a run needs


def _not_ready(policy: Policy = IN_PLACE) -> Play:
    play = _at_gate(policy)
    play.give(LinkLost(why="no such file"))
    play.give(RunNotReady(run=1, why="/data does not answer within 10 s"))
    return play


def test_run_that_is_not_ready_waits_as_long_as_for_a_chip_from_the_first_time_on() -> None:
    play = _not_ready()
    play.give(RunNotReady(run=1, why="eth2, a port of npu3, is down", is_of_chips=True), 300)
    play.wait(299)
    assert play.left() is None
    play.wait(1)
    assert play.left() == 86


def test_run_that_becomes_ready_has_no_time_limit_any_more() -> None:
    play = _not_ready()
    play.ran()
    play.wait(3600)
    assert play.phase is SessionPhase.RUNNING


def test_run_that_is_not_ready_is_called_off_like_one_that_runs() -> None:
    play = _not_ready()
    only(play.give(Signalled(number=15)), Terminate)
    play.give(CalledOff(run=1))
    assert play.left() == 143


def test_job_that_is_only_watched_is_called_off_by_the_signal_itself() -> None:
    play = Play()
    play.begin()
    play.give(RunNotReady(run=1, why="/data does not answer within 10 s"))
    only(play.give(Signalled(number=2)), Terminate)
    play.give(CalledOff(run=1))
    assert play.left() == 130
