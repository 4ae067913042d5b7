"""What a supervisor says: once each, in events, and of no run but the one that it means."""

import pytest

from nodeagent.core.model import EventKind, JobStage, Recommendation, RunReported, RunReportKind
from tests.core.build import held
from tests.core.jobs.place import JOB, OTHER, Place


def test_what_was_said_is_taken_once() -> None:
    place = Place()
    place.run()
    said = RunReported(job=JOB, number=5, run=1, what=RunReportKind.EXITED, status=1)
    assert len(place.do(said)) == 1
    assert place.do(said) == []
    assert (place.job().said, place.job().run) == (5, 2)


def test_what_is_said_twice_is_not_stored_twice() -> None:
    place = Place()
    place.run()
    said = RunReported(job=JOB, number=5, run=1, what=RunReportKind.SUSPECTED)
    place.do(said)
    stored = len(place.records)
    place.do(said)
    assert len(place.records) == stored


def test_of_a_job_that_is_not_known_nothing_is_taken() -> None:
    place = Place()
    assert place.do(RunReported(job=OTHER, number=1, run=1, what=RunReportKind.STARTED)) == []
    assert place.engine.view().jobs == ()


@pytest.mark.parametrize("what", [RunReportKind.STOPPED, RunReportKind.EXITED])
def test_the_end_of_a_former_run_ends_no_later_one(what: RunReportKind) -> None:
    place = Place()
    place.begin(run=3, is_running=True)
    place.say(what, run=2)
    assert (place.stage(), place.job().run) == (JobStage.RUNNING, 3)
    assert place.job_events()[-1][0] == "job_stopped"


def test_a_start_that_nobody_granted_is_a_run() -> None:
    place = Place()
    place.fault()
    place.begin()
    place.say(RunReportKind.STARTED)
    assert place.stage() is JobStage.ASKED


@pytest.mark.parametrize(
    ("what", "kind"),
    [
        (RunReportKind.SUSPECTED, "job_suspected"),
        (RunReportKind.SUSPENDED, "job_suspended"),
        (RunReportKind.CLEARED, "job_suspected"),
    ],
)
def test_a_run_that_stands_still_is_told_and_goes_on_as_far_as_the_daemon_is_concerned(
    what: RunReportKind, kind: str
) -> None:
    place = Place()
    place.run()
    place.say(what, why="all ranks quiet for 30 min", evidence={"path": "run-1/hang"})
    (event,) = [event for event in place.events if event.kind.value == kind]
    assert event.why == "all ranks quiet for 30 min"
    assert event.evidence == {"path": "run-1/hang", "said": what.value, "number": "2", "run": "1"}
    assert place.stage() is JobStage.RUNNING


def test_a_slow_rank_is_named_until_it_keeps_up_and_moves_no_job() -> None:
    place = Place()
    place.run()
    differs = {"who": "rank 2", "score": "0.50"}
    place.say(RunReportKind.SLOW, why="rank 2 holds up its peers", evidence=differs)
    place.say(RunReportKind.SLOW, why="npu3 holds up its peers", evidence={"who": "npu3"})
    assert (place.job().slow, place.stage()) == (("rank 2", "npu3"), JobStage.RUNNING)
    assert place.job().recommended is Recommendation.NONE
    place.say(RunReportKind.KEEPS_UP, evidence={"who": "rank 2"})
    assert place.job().slow == ("npu3",)
    events = [event for event in place.events if event.kind is EventKind.JOB_SLOW]
    assert [(event.why, event.evidence["said"]) for event in events] == [
        ("rank 2 holds up its peers", "slow"),
        ("npu3 holds up its peers", "slow"),
        ("rank 2 no longer holds up the others of run 1", "keeps_up"),
    ]
    assert events[0].evidence["score"] == "0.50"


def test_no_rank_of_a_run_that_is_over_is_slow() -> None:
    place = Place()
    place.run()
    place.say(RunReportKind.SLOW, evidence={"who": "rank 2"})
    place.say(RunReportKind.EXITED, status=1)
    assert place.job().slow == ()


def test_a_job_names_a_bounded_number_of_slow_ranks() -> None:
    place = Place()
    place.run()
    for rank in range(100):
        place.say(RunReportKind.SLOW, evidence={"who": f"rank {rank}"})
    assert (len(place.job().slow), place.job().slow[-1]) == (16, "rank 99")


def test_a_supervisor_that_stops_a_suspended_run_by_itself_makes_the_next_one() -> None:
    place = Place()
    place.run()
    place.say(RunReportKind.SUSPENDED)
    place.do(held("npu0", None))
    place.say(RunReportKind.STOPPED)
    assert (place.stage(), place.job().run) == (JobStage.RUNNING, 2)


def test_the_status_of_a_run_is_in_its_event() -> None:
    place = Place()
    place.run()
    place.say(RunReportKind.EXITED, status=137, why="killed")
    (event,) = [event for event in place.events if event.kind is EventKind.JOB_STOPPED]
    assert (event.why, event.evidence["status"]) == ("run 1 ended by itself with status 137: killed", "137")


def test_a_run_that_ended_by_itself_has_no_times_of_a_recovery() -> None:
    place = Place()
    place.run()
    place.say(RunReportKind.EXITED, status=1)
    place.say(RunReportKind.STARTED)
    (event,) = [event for event in place.events if event.kind is EventKind.JOB_RERUN]
    assert event.evidence == {"said": "started", "number": "3", "run": "2"}
