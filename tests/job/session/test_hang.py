"""A run hangs: evidence, then as the policy says; three in a row, and the fourth ends the job."""

from nodeagent.job.model import Counts, HangMode, Policy, RunReport, Wish
from nodeagent.job.session.state import SessionPhase
from nodeagent.job.session.values import (
    CommandExited,
    Gather,
    Gathered,
    HangStage,
    Hung,
    Progressed,
    RunFailure,
    Signalled,
    Start,
    Terminate,
)
from tests.job.session.play import Play, kinds, only, running

RESTART = Policy(in_place=True, placements=3, hang=HangMode.RESTART)
DAY_S = 24 * 3600.0


def _confirmed(play: Play, *, acts: bool = True) -> Hung:
    return Hung(run=play.run, what=HangStage.CONFIRMED, why="all ranks quiet", since_s=1800, acts=acts)


def _hang(play: Play) -> None:
    """Up to the end of the run."""
    play.give(_confirmed(play))
    play.give(Gathered(run=play.run, path="/state/run-1/hang"))
    play.exited(signal=15)


def test_the_evidence_is_gathered_and_told_before_the_run_is_stopped() -> None:
    play = running(RESTART)
    gather = only(play.give(_confirmed(play)), Gather)
    assert (gather.run, gather.run_ends) == (1, True)
    orders = play.give(Gathered(run=1, path="/state/run-1/hang", digest="abc"), 3)
    assert kinds(orders) == ["RunReport", "Terminate"]
    report = only(orders, RunReport)
    assert (report.what, report.why) == ("suspended", "all ranks quiet")
    assert report.evidence == {"path": "/state/run-1/hang", "digest": "abc", "since_s": "1800"}


def test_then_the_run_is_made_again_in_place() -> None:
    play = running(RESTART)
    _hang(play)
    start = only(play.want(Wish.RUN, run=2), Start)
    assert (start.environment["NODEAGENT_WHY"], start.environment["MA_PROC_START_CNT"]) == ("suspended", "2")
    assert play.session.state.counts == Counts(hangs=1)


def test_evidence_that_does_not_come_is_not_waited_for() -> None:
    play = running(RESTART)
    play.give(_confirmed(play))
    assert kinds(play.wait(20)) == ["RunReport", "Terminate"]


def test_evidence_may_end_the_command() -> None:
    """The stacks of ranks are had by a signal that ends them; that is no failure of its own."""
    play = running(RESTART)
    play.give(_confirmed(play))
    assert play.exited(1) == []
    play.give(Gathered(run=1, path="/state/run-1/hang"))
    assert (play.phase, play.session.state.counts) == (SessionPhase.GATE, Counts(hangs=1))


def test_a_command_that_is_done_meanwhile_did_not_hang() -> None:
    play = running(RESTART)
    play.give(_confirmed(play))
    play.give(CommandExited(run=1, failure=RunFailure(status=0)))
    assert play.left() == 0


def test_three_suspensions_make_three_reruns_and_the_fourth_ends_the_job() -> None:
    play = running(RESTART)
    for _ in range(4):
        _hang(play)
        if play.left() is None:
            play.allow()
            play.ran()
    assert play.left() == 87
    assert [each["MA_PROC_START_CNT"] for each in play.starts] == ["1", "2", "3", "4"]
    assert play.session.state.counts.placements == 0


def test_progress_between_begins_the_row_anew() -> None:
    play = running(RESTART)
    for number in range(4):
        play.give(Progressed(run=play.run, number=number))
        _hang(play)
        play.allow()
        play.ran()
    assert (play.left(), play.session.state.counts.hangs) == (None, 1)


def test_without_any_source_of_progress_a_day_of_quiet_begins_it_anew() -> None:
    play = running(RESTART)
    for _ in range(3):
        _hang(play)
        play.allow()
        play.ran()
    play.wait(DAY_S)
    _hang(play)
    assert (play.left(), play.session.state.counts.hangs) == (None, 1)


def test_a_suspicion_within_that_day_does_not() -> None:
    play = running(RESTART)
    for _ in range(3):
        _hang(play)
        play.allow()
        play.ran()
    play.wait(DAY_S / 2)
    play.give(Hung(run=play.run, what=HangStage.SUSPECTED, why="quiet", since_s=900))
    play.give(Hung(run=play.run, what=HangStage.CLEARED, why="it goes on", since_s=1000))
    play.wait(DAY_S - 1)
    _hang(play)
    assert play.left() == 87


def test_with_a_source_of_progress_time_alone_does_not() -> None:
    play = running(RESTART)
    play.give(Progressed(run=1, number=7))
    for _ in range(3):
        _hang(play)
        play.allow()
        play.ran()
    play.wait(2 * DAY_S)
    _hang(play)
    assert play.left() == 87


def test_checkpoint_that_a_run_writes_while_it_is_stopped_begins_the_row_anew() -> None:
    play = running(RESTART)
    for number in range(4):
        play.give(_confirmed(play))
        play.give(Gathered(run=play.run, path=""))
        play.give(Progressed(run=play.run, number=number))
        play.exited(signal=15)
        play.allow()
        play.ran()
    assert (play.left(), play.session.state.counts.hangs) == (None, 1)


# ---------------------------------------------------------------------- not to be acted on


def test_by_default_a_hang_is_told_with_its_evidence_and_the_run_goes_on() -> None:
    play = running(Policy(in_place=True))
    assert only(play.give(_confirmed(play)), Gather).run_ends is False
    report = only(play.give(Gathered(run=1, path="/state/run-1/hang")), RunReport)
    assert (report.what, play.phase) == ("suspended", SessionPhase.RUNNING)


def test_it_is_told_also_where_the_evidence_does_not_come() -> None:
    play = running(Policy(in_place=True))
    play.give(_confirmed(play))
    assert [each.what for each in play.wait(20) if isinstance(each, RunReport)] == ["suspended"]
    assert play.session.next_deadline_ns() is None


def test_what_may_only_be_told_is_only_told() -> None:
    play = running(RESTART)
    assert only(play.give(_confirmed(play, acts=False)), Gather).run_ends is False
    assert play.phase is SessionPhase.RUNNING


def test_switched_off_nothing_is_said() -> None:
    play = running(Policy(in_place=True, hang=HangMode.OFF))
    assert play.give(_confirmed(play)) == []


def test_a_suspicion_and_its_end_are_told() -> None:
    play = running(RESTART)
    found = (HangStage.SUSPECTED, HangStage.CLEARED, HangStage.SUSPECTED, HangStage.DROPPED)
    reported = [only(play.give(Hung(run=1, what=what, why="w", since_s=1)), RunReport).what for what in found]
    assert reported == ["suspected", "cleared", "suspected", "cleared"]


# ---------------------------------------------------------------------- something else comes between


def test_a_fault_found_meanwhile_makes_it_no_hang() -> None:
    play = running(RESTART)
    play.give(_confirmed(play))
    only(play.want(Wish.STOP), Terminate)
    play.exited(signal=15)
    assert (play.session.state.why.value, play.session.state.counts) == ("healed", Counts())


def test_a_fault_found_while_a_hung_run_stops_makes_it_no_hang() -> None:
    play = running(RESTART)
    play.give(_confirmed(play))
    play.give(Gathered(run=1, path=""))
    play.want(Wish.STOP)
    play.exited(signal=15)
    assert (play.session.state.why.value, play.session.state.counts) == ("healed", Counts())


def test_the_scheduler_ends_it_while_evidence_is_gathered() -> None:
    play = running(RESTART)
    play.give(_confirmed(play))
    only(play.give(Signalled(number=15)), Terminate)
    play.exited(signal=15)
    assert play.left() == 143


def test_in_a_step_a_hang_is_left_to_all_nodes_together() -> None:
    play = running(Policy(hang=HangMode.RESTART, in_step=True))
    _hang(play)
    assert (play.left(), play.session.state.counts.hangs) == (85, 1)


def test_what_is_said_of_an_earlier_run_is_past() -> None:
    play = running(RESTART)
    _hang(play)
    play.want(Wish.RUN, run=2)
    play.ran()
    assert play.give(Hung(run=1, what=HangStage.CONFIRMED, why="late", since_s=1)) == []
    assert play.phase is SessionPhase.RUNNING
