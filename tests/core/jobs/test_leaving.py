"""A job that is to give up this node: why, when, and whether it, or a chip of it, takes no new work."""

from dataclasses import replace

import pytest

from nodeagent.core.catalog.settings import Mode
from nodeagent.core.model import (
    ActionState,
    Assertion,
    CatalogChanged,
    JobPolicy,
    JobStage,
    Level,
    Recommendation,
    ResetMode,
    RunReportKind,
    Signal,
    SourceBack,
    Verdict,
    Wanted,
)
from tests.core.build import held, lost, order, row, signal, stands
from tests.core.jobs.place import BOTH, CONTAINERS, IN_PLACE, JOB, MINE, MOVES, WATCHED, Place, job_catalog
from tests.core.resets.ring import BROKEN


def held_for_a_reset(place: Place) -> None:
    """Its chip broke, it has stopped, and the reset runs."""
    place.run()
    place.fault()
    place.wait(1)
    place.poll_all(BROKEN)
    place.stop()
    assert (place.stage(), len(place.actions)) == (JobStage.HOLDING, 1)


def stuck(chip: str, assertion: Assertion = Assertion.OCCUR) -> Signal:
    """As the daemon says what it has seen."""
    return Signal(source="agent", device=chip, code="process_unkillable", assertion=assertion)


def leaves(place: Place) -> tuple[Wanted | None, bool]:
    return place.job().wanted, place.job().isolated


def test_one_that_does_not_stop_in_time() -> None:
    place = Place()
    place.run()
    place.fault()
    place.wait(60.001)
    assert leaves(place) == (Wanted.LEAVE, True)
    assert place.job_events()[-1] == ("job_asked", "it did not stop within 60 s")


def test_one_that_says_it_has_stopped_and_has_not() -> None:
    place = Place()
    place.run()
    place.fault()
    place.wait(1)
    place.poll_all(BROKEN)
    place.say(RunReportKind.STOPPED)
    place.wait(60)
    assert place.job_events()[-1] == (
        "job_asked",
        "it did not stop within 60 s: npu0 is used by python (pid 7)",
    )
    assert place.actions == []


def test_one_whose_chip_is_not_healed_in_time() -> None:
    place = Place()
    place.run()
    place.fault()
    place.do(lost(device="npu1"))
    place.stop()
    place.wait(600.001)
    assert leaves(place) == (Wanted.LEAVE, True)
    assert place.job().why == (
        "its chips were not well within 600 s: the reset of npu0, npu1 for RestartNPU; "
        "its reset does not begin: npu1 is not observed: ascend: no answer"
    )


def test_one_whose_reset_has_failed_twice() -> None:
    place = Place()
    held_for_a_reset(place)
    place.result(ActionState.FAILED, "the driver says no")
    assert place.stage() is JobStage.HOLDING
    place.wait(31)
    place.poll_all(BROKEN)
    place.result(ActionState.FAILED, "the driver says no")
    assert leaves(place) == (Wanted.LEAVE, True)
    assert place.job().recommended is Recommendation.RESCHEDULE_ISOLATED


def test_one_whose_reset_a_person_refuses() -> None:
    place = Place()
    place.run()
    place.fault()
    place.do(order("refuse", "die0/reset#1"))
    assert leaves(place) == (Wanted.LEAVE, True)
    assert place.job().why == "npu0: RestartNPU at RestartNPU; its reset: refused: refused by uid:1000: bench"


def test_one_whose_chips_have_had_all_their_resets() -> None:
    place = Place(job_catalog(limit=1))
    held_for_a_reset(place)
    place.help()
    place.wait(100)
    place.fault()
    assert leaves(place) == (Wanted.RUN, True)
    place.say(RunReportKind.EXITED, status=1)
    assert leaves(place) == (Wanted.LEAVE, True)


def test_one_whose_chip_a_person_isolates_while_it_is_held() -> None:
    place = Place()
    held_for_a_reset(place)
    place.help()
    place.order("stop_job")
    place.do(order("isolate"))
    assert leaves(place) == (Wanted.LEAVE, True)


@pytest.mark.parametrize("policy", [MOVES, BOTH])
def test_one_that_may_run_elsewhere_leaves_a_chip_that_no_reset_will_help(policy: JobPolicy) -> None:
    place = Place()
    place.run(policy)
    place.fault("SeparateNPU")
    assert leaves(place) == (Wanted.LEAVE, True)
    assert place.job_events()[-1] == ("job_asked", "npu0: SeparateNPU at SeparateNPU")


@pytest.mark.parametrize("policy", [IN_PLACE, WATCHED])
def test_one_that_may_not_stays_and_its_scheduler_is_told_what_to_do(policy: JobPolicy) -> None:
    place = Place()
    place.run(policy)
    place.fault("SeparateNPU")
    assert leaves(place) == (Wanted.RUN, True)
    assert place.job().recommended is Recommendation.RESCHEDULE_ISOLATED


def test_one_that_may_not_be_stopped_leaves_rather_than_wait_for_a_reset() -> None:
    place = Place()
    place.run(MOVES)
    place.fault()
    assert leaves(place) == (Wanted.LEAVE, True)


@pytest.mark.parametrize("mode", [ResetMode.OFF, ResetMode.DRY_RUN])
def test_where_nothing_is_reset_one_that_may_run_elsewhere_leaves(mode: ResetMode) -> None:
    place = Place(job_catalog(mode))
    place.run(BOTH)
    place.fault()
    assert leaves(place) == (Wanted.LEAVE, True)


def test_one_that_may_be_stopped_and_run_elsewhere_is_stopped() -> None:
    place = Place()
    place.run(BOTH)
    place.fault()
    assert place.job().wanted is Wanted.STOP


def test_one_that_may_only_be_run_elsewhere_leaves_a_chip_that_is_to_be_reset_once_it_is_free() -> None:
    place = Place()
    place.run(MOVES)
    place.fault("FreeRestartNPU")
    assert leaves(place) == (Wanted.LEAVE, True)


def test_a_fault_of_the_node_sends_it_away() -> None:
    place = Place()
    place.run(BOTH)
    place.do(order("isolate", "node"))
    assert leaves(place) == (Wanted.LEAVE, True)


def test_another_chip_of_the_node_is_not_its_business() -> None:
    place = Place(chips=3)
    place.run(BOTH)
    place.fault("SeparateNPU", "npu2")
    assert leaves(place) == (Wanted.RUN, False)


def test_a_reset_that_is_to_be_expected_is_waited_for_but_not_for_ever() -> None:
    """The chip is not read just now: its fault may yet be seen, and be reset."""
    place = Place()
    place.run(BOTH)
    place.do(lost(device="npu0"))
    place.do(signal(BROKEN, "once"))
    assert place.job().wanted is Wanted.RUN
    place.wait(60.001)
    assert leaves(place) == (Wanted.LEAVE, True)


def test_a_reset_that_was_expected_stops_it_as_any_other() -> None:
    place = Place()
    place.run(BOTH)
    place.do(lost(device="npu0"))
    place.do(signal(BROKEN, "occur"))
    place.do(SourceBack(source="ascend", device="npu0"))
    place.poll_all(BROKEN)
    assert place.job().wanted is Wanted.STOP


def test_the_applications_fault_restarts_it_and_no_fault_of_its_last_run_counts_for_the_next() -> None:
    place = Place()
    place.run()
    place.do(signal(MINE, "once"))
    assert place.job().wanted is Wanted.STOP
    place.stop()
    assert (place.stage(), place.job().run) == (JobStage.RUNNING, 2)
    assert stands(place.engine)[1:] == (Verdict.ALLOW, "RESTART_JOB")


def test_a_programs_fault_that_the_node_shows_stops_no_job() -> None:
    """The container that ran out of memory may be anybody's. Where it was the job's, the job fails."""
    place = Place()
    place.run(BOTH)
    for _ in range(3):
        place.do(signal(CONTAINERS, "once", "node"))
        place.wait(1)
    assert (place.job().wanted, place.job().run) == (Wanted.RUN, 1)
    assert place.job().recommended is Recommendation.NONE


def hit(place: Place) -> None:
    """By its own fault, after a while."""
    place.wait(200)
    place.do(signal(MINE, "once"))


def test_the_third_time_in_a_day_it_leaves_a_node_that_is_well() -> None:
    place = Place()
    place.run(BOTH)
    for _ in range(2):
        hit(place)
        place.stop()
        place.do(held("npu0", JOB))
    hit(place)
    assert leaves(place) == (Wanted.LEAVE, False)
    assert place.job().recommended is Recommendation.RESCHEDULE


def test_the_third_time_while_it_stops_it_leaves_too() -> None:
    place = Place()
    place.run()
    for _ in range(3):
        place.do(signal(MINE, "once"))
        place.wait(1)
    assert leaves(place) == (Wanted.LEAVE, False)


def test_such_a_fault_of_a_job_before_it_sends_nobody_away() -> None:
    place = Place()
    place.do(held("npu0", "slurm:6.0"))
    for _ in range(3):
        place.do(signal(MINE, "once"))
        place.wait(1)
    place.begin(BOTH)
    assert (place.job().handling, place.job().wanted) == ("RESCHEDULE", Wanted.RUN)


def test_one_that_says_that_a_process_cannot_be_ended_leaves_and_nothing_takes_less_work() -> None:
    place = Place()
    place.run()
    place.say(RunReportKind.UNKILLABLE, why="pid 7 does not end")
    assert leaves(place) == (Wanted.LEAVE, False)
    assert (place.open_on("node"), place.open_on("npu0")) == ([], [])
    assert place.verdicts(["node", "npu0"]) == ["ALLOW", "ALLOW"]


def test_one_whose_process_was_seen_not_to_end_leaves_a_chip_that_takes_no_new_work() -> None:
    place = Place()
    place.run()
    place.do(stuck("npu0"))
    place.say(RunReportKind.UNKILLABLE, why="pid 7 does not end")
    assert leaves(place) == (Wanted.LEAVE, True)
    assert place.open_on("npu0") == ["process_unkillable"]
    place.do(stuck("npu0", Assertion.RECOVER))
    assert place.open_on("npu0") == []


def test_one_that_was_sent_away_is_not_kept_though_all_is_well_again() -> None:
    place = Place()
    place.run(BOTH)
    place.do(order("isolate"))
    place.do(order("release"))
    assert (place.verdicts(["npu0"]), leaves(place)) == (["ALLOW"], (Wanted.LEAVE, True))


def test_while_it_leaves_its_chips_are_its_own() -> None:
    place = Place()
    place.run()
    place.fault()
    place.do(held("npu0", None))
    place.wait(60.001)
    place.poll_all(BROKEN)
    assert place.hindered() == (f"npu0 is used by the job {JOB}, which is asked to leave",)
    place.leave(status=86)
    assert len(place.actions) == 1


def test_new_tables_ask_nobody_to_stop_until_the_fault_is_heard_again() -> None:
    first, graceful = job_catalog(), job_catalog(how=Mode.GRACEFUL, digest="second")
    restarts = row("FLAKY", Level.RESTART_BUSINESS)
    place = Place(
        replace(first, rows={**first.rows, "FLAKY": row("FLAKY", Level.SUB_HEALTH)}),
        later=replace(graceful, rows={**graceful.rows, "FLAKY": restarts}),
    )
    place.run()
    place.fault("FLAKY")
    place.do(CatalogChanged(digest="second"))
    place.wait(20)
    assert (place.job().handling, place.job().wanted) == ("RESTART_JOB", Wanted.RUN)
    place.fault("FLAKY")
    assert place.job().wanted is Wanted.STOP


def test_the_time_without_a_daemon_is_not_counted_against_a_job_that_stopped_in_it() -> None:
    place = Place()
    place.run()
    place.fault()
    place.pass_unheard(300)
    place.restart()
    place.stop()
    assert place.stage() is JobStage.HOLDING


def test_nor_against_one_that_waits_for_its_chips() -> None:
    place = Place()
    place.run()
    place.fault()
    place.stop()
    place.pass_unheard(700)
    place.restart()
    assert place.stage() is JobStage.HOLDING


def test_after_a_start_it_has_as_long_as_ever() -> None:
    place = Place()
    place.run()
    place.fault()
    place.pass_unheard(300)
    place.restart()
    place.wait(60.001)
    assert place.stage() is JobStage.LEAVING
