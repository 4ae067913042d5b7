"""A supervisor is started anew, in the middle of a session or for a new placement."""

import pytest

from nodeagent.job.model import SECOND_NS, Counts, HangMode, Policy, RunEvent, RunReport, Wish
from nodeagent.job.session.state import SessionPhase
from nodeagent.job.session.values import (
    CommandExited,
    Emptied,
    Gathered,
    HangStage,
    Hung,
    KeepCounts,
    LinkBack,
    LinkLost,
    ProcessId,
    Progressed,
    RunFailure,
    SessionBegan,
    Signalled,
    Start,
    Terminate,
)
from tests.job.session.play import BOOT_ID, Play, kinds, only, running

IN_PLACE = Policy(in_place=True, placements=3, in_place_retries=2, hang=HangMode.RESTART)
SURVIVOR = ProcessId(pid=1001, start_time=1)


def _anew(play: Play, *survivors: ProcessId, schedule: int = 1, boot_id: str = BOOT_ID) -> list[str]:
    counts = Counts(schedule=schedule)
    return kinds(
        play.give(SessionBegan(boot_id=boot_id, policy=play.policy, counts=counts, survivors=survivors))
    )


def test_a_run_that_outlived_its_supervisor_is_ended_before_the_next_begins() -> None:
    play = running(IN_PLACE)
    assert _anew(play, SURVIVOR) == ["KeepCounts", "Terminate"]
    play.give(LinkLost(why="no daemon"))
    assert len(play.starts) == 1
    orders = play.give(Emptied(run=1))
    assert only(orders, RunReport).what == "exited"
    assert only(orders, Start).environment["MA_PROC_START_CNT"] == "2"


def test_a_run_that_ended_with_its_supervisor_is_made_again() -> None:
    play = running(IN_PLACE)
    _anew(play)
    start = only(play.give(LinkLost(why="no daemon")), Start)
    assert (start.run, start.environment["NODEAGENT_WHY"]) == (2, "failed")


def test_a_start_that_nobody_saw_happen_is_ordered_again() -> None:
    play = Play(IN_PLACE)
    play.begin_with_daemon()
    assert _anew(play) == ["KeepCounts"]
    play.give(LinkBack(job="slurm:7.0"))
    play.allow()
    assert [each["NODEAGENT_RUN"] for each in play.starts] == ["1", "1"]


def test_a_start_that_nobody_saw_happen_is_not_made_if_a_fault_was_found_meanwhile() -> None:
    """The daemon takes the run for stopped then, and counts on."""
    play = Play(IN_PLACE)
    play.begin_with_daemon()
    _anew(play)
    play.give(LinkBack(job="slurm:7.0"))
    assert play.want(Wish.HOLD, run=2) == []
    start = only(play.want(Wish.RUN, run=2), Start)
    assert (start.run, start.environment["NODEAGENT_RUN"], start.environment["MA_PROC_START_CNT"]) == (
        2,
        "2",
        "1",
    )
    assert play.run == 2


def test_a_start_that_did_happen_is_not_ordered_again() -> None:
    play = Play(IN_PLACE)
    play.begin_with_daemon()
    assert _anew(play, SURVIVOR) == ["KeepCounts", "Terminate"]
    play.give(Emptied(run=1))
    play.give(LinkLost(why="no daemon"))
    assert [each["NODEAGENT_RUN"] for each in play.starts] == ["1", "2"]


def test_counts_survive_the_supervisor() -> None:
    play = running(IN_PLACE)
    play.give(Progressed(run=1, number=70))
    play.exited(1, error_type="RuntimeError", message="x")
    play.wait(5)
    before = play.session.state.counts
    assert before == Counts(best=70, retries=1, signature="RuntimeError: x", same_errors=1)
    orders = play.give(SessionBegan(boot_id=BOOT_ID, policy=IN_PLACE, counts=Counts()))
    assert only(orders, KeepCounts).counts == before


def test_a_stop_goes_on_where_it_was() -> None:
    play = running(IN_PLACE)
    play.want(Wish.STOP)
    assert _anew(play, SURVIVOR) == ["KeepCounts", "Terminate"]
    assert only(play.give(Emptied(run=1)), RunReport).what == "stopped"


def test_a_stop_that_came_to_its_end_unseen_is_told() -> None:
    play = running(IN_PLACE)
    play.want(Wish.STOP)
    assert _anew(play) == ["KeepCounts", "RunReport", "Print"]
    assert play.orders[-2] == RunReport(
        number=2, run=1, what=RunEvent.STOPPED, why="it runs again as soon as the daemon allows it"
    )
    assert play.phase is SessionPhase.GATE


def test_a_job_that_was_held_is_held_still() -> None:
    play = running(IN_PLACE)
    play.want(Wish.STOP)
    play.exited(signal=15)
    play.want(Wish.HOLD, run=2)
    _anew(play)
    assert play.give(LinkLost(why="no daemon")) == []
    assert play.phase is SessionPhase.GATE


def test_a_verdict_that_was_awaited_is_awaited_still() -> None:
    play = running(IN_PLACE)
    play.give(CommandExited(run=1, failure=RunFailure(status=1, error_type="ValueError", message="x")))
    _anew(play)
    play.give(LinkLost(why="no daemon"))
    play.wait(5)
    assert play.left() == 87


def test_time_that_nobody_watched_counts_for_nothing() -> None:
    """Neither for what was to be killed, nor at the gate, nor for the daemon's verdict."""
    killing, held, judged = running(IN_PLACE), running(IN_PLACE), running(IN_PLACE)
    killing.want(Wish.STOP)
    killing.wait(20)
    assert killing.phase is SessionPhase.KILLING
    held.want(Wish.STOP)
    held.exited(signal=15)
    judged.exited(1, error_type="RuntimeError", message="x")
    for play, survivors in ((killing, (SURVIVOR,)), (held, ()), (judged, ())):
        play.now_s += 7200
        play.session.step(
            round(play.now_s * SECOND_NS),
            SessionBegan(boot_id=BOOT_ID, policy=IN_PLACE, counts=Counts(), survivors=survivors),
        )
    assert [play.phase for play in (killing, held, judged)] == [
        SessionPhase.STOPPING,
        SessionPhase.GATE,
        SessionPhase.JUDGING,
    ]


def test_a_hang_whose_evidence_was_lost_is_told_all_the_same() -> None:
    play = running(IN_PLACE)
    play.give(Hung(run=1, what=HangStage.CONFIRMED, why="quiet", since_s=1800))
    assert _anew(play, SURVIVOR) == ["KeepCounts", "RunReport", "Terminate"]
    assert only(play.orders[-3:], RunReport).what == "suspended"
    assert play.give(Gathered(run=1, path="/late")) == []
    play.give(Emptied(run=1))
    assert play.session.state.counts.hangs == 1


def test_a_signal_was_for_the_supervisor_that_got_it() -> None:
    play = running(IN_PLACE)
    play.give(Signalled(number=15))
    _anew(play, SURVIVOR)
    play.give(Emptied(run=1))
    assert (play.left(), play.run, play.phase) == (None, 2, SessionPhase.GATE)


def test_what_escaped_from_an_earlier_run_is_ended_and_changes_no_number() -> None:
    play = running(IN_PLACE)
    play.want(Wish.STOP)
    play.exited(signal=15)
    only(
        play.give(SessionBegan(boot_id=BOOT_ID, policy=IN_PLACE, counts=Counts(), survivors=(SURVIVOR,))),
        Terminate,
    )
    orders = play.give(Emptied(run=1))
    assert [each for each in orders if isinstance(each, RunReport)] == []
    assert (play.phase, play.run, play.session.state.why.value) == (SessionPhase.GATE, 2, "healed")


# ---------------------------------------------------------------------- a new placement


@pytest.mark.parametrize("change", ["schedule", "boot"])
def test_a_new_placement_begins_anew_with_the_counts_that_were_kept(change: str) -> None:
    play = running(IN_PLACE)
    kept = Counts(schedule=2 if change == "schedule" else 1, placements=1, best=9)
    boot_id = "boot-2" if change == "boot" else BOOT_ID
    play.give(SessionBegan(boot_id=boot_id, policy=IN_PLACE, counts=kept))
    assert (play.phase, play.run, play.session.state.counts) == (SessionPhase.GATE, 1, kept)
    start = only(play.give(LinkLost(why="no daemon")), Start)
    assert start.environment["MA_PROC_START_CNT"] == "1"


def test_what_an_earlier_placement_left_behind_is_ended_first() -> None:
    play = running(IN_PLACE)
    assert _anew(play, SURVIVOR, schedule=2) == ["Terminate"]
    assert play.session.state.run == 0
    play.give(LinkLost(why="no daemon"))
    orders = play.give(Emptied(run=0))
    assert kinds(orders) == ["Start"]
    assert only(orders, Start).environment["NODEAGENT_WHY"] == "first"


def test_a_session_that_has_left_is_over() -> None:
    play = running(IN_PLACE)
    play.exited(0)
    _anew(play)
    assert (play.phase, play.run) == (SessionPhase.GATE, 1)


def test_numbers_of_reports_only_ever_grow() -> None:
    play = running(IN_PLACE)
    play.exited(0)
    _anew(play, schedule=2)
    play.give(LinkLost(why="no daemon"))
    play.ran()
    assert [each.number for each in play.orders if isinstance(each, RunReport)] == [1, 2, 3]
