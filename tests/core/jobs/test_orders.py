"""Orders of operators: stop a job, and run it again."""

from nodeagent.core.model import ActionState, JobStage, Refused, RunReportKind, Wanted
from tests.core.build import held
from tests.core.jobs.place import JOB, MOVES, WATCHED, Place
from tests.core.resets.ring import BROKEN


def test_one_that_is_stopped_stays_so_until_it_is_run_again() -> None:
    place = Place()
    place.run()
    assert place.order("stop_job").ids == (JOB,)
    job = place.job()
    assert (job.wanted, job.by_operator, job.why) == (Wanted.STOP, True, "stopped by uid:1000: bench")
    place.stop()
    place.wait(3600)
    assert (place.job().wanted, place.job().by_operator) == (Wanted.HOLD, True)
    assert place.order("rerun_job").ids == (JOB,)
    assert (place.job().wanted, place.job().run) == (Wanted.RUN, 2)


def test_to_run_one_again_that_runs_stops_it_first() -> None:
    place = Place()
    place.run()
    assert place.order("rerun_job").accepted
    assert (place.job().wanted, place.job().by_operator) == (Wanted.STOP, True)
    place.stop()
    assert (place.job().wanted, place.job().run) == (Wanted.RUN, 2)


def test_one_that_is_run_again_by_order_waits_for_its_chips_all_the_same() -> None:
    place = Place()
    place.run()
    place.order("stop_job")
    place.stop()
    place.fault()
    place.order("rerun_job")
    assert place.job().wanted is Wanted.HOLD
    place.wait(1)
    place.poll_all(BROKEN)
    place.help()
    assert place.job().wanted is Wanted.RUN


def test_one_that_is_asked_already_may_be_stopped_for_good() -> None:
    place = Place()
    place.run()
    place.fault()
    assert place.order("stop_job").accepted
    place.wait(1)
    place.poll_all(BROKEN)
    place.stop()
    place.help()
    assert (place.stage(), place.job().by_operator) == (JobStage.HOLDING, True)


def test_one_that_does_not_stop_for_an_operator_is_sent_away() -> None:
    place = Place()
    place.run()
    place.order("stop_job")
    place.wait(60.001)
    assert (place.job().wanted, place.job().isolated) == (Wanted.LEAVE, False)


def test_one_that_an_operator_stopped_leaves_a_chip_that_no_reset_helped() -> None:
    place = Place()
    place.run()
    place.order("stop_job")
    place.stop()
    place.fault()
    place.wait(1)
    place.poll_all(BROKEN)
    for _ in range(2):
        place.result(ActionState.FAILED)
        place.wait(31)
        place.poll_all(BROKEN)
    assert place.job().wanted is Wanted.LEAVE


def test_a_job_that_is_not_there_is_answered_with_those_that_are() -> None:
    place = Place()
    place.begin()
    answer = place.order("stop_job", "slurm:9.0")
    assert answer.refused is Refused.UNKNOWN
    assert answer.reason == f"job: 'slurm:9.0' is not supervised on this node; there are: {JOB}"


def test_one_whose_policy_does_not_allow_it_is_not_stopped() -> None:
    for policy in (WATCHED, MOVES):
        place = Place()
        place.run(policy)
        for what in ("stop_job", "rerun_job"):
            answer = place.order(what)
            assert answer.refused is Refused.NOT_POSSIBLE
            why = f"job: {JOB} may not be stopped and run again by its policy; end it by its scheduler"
            assert answer.reason == why


def test_one_that_leaves_is_neither_stopped_nor_run_again() -> None:
    place = Place()
    place.run()
    place.fault()
    place.wait(61)
    for what in ("stop_job", "rerun_job"):
        assert place.order(what).reason == f"job: {JOB} is leaving this node: it did not stop within 60 s"


def test_one_that_is_stopped_is_not_stopped_twice() -> None:
    place = Place()
    place.run()
    place.order("stop_job")
    reason = f"job: {JOB} is stopped by an operator already: stopped by uid:1000: bench"
    assert place.order("stop_job").reason == reason


def test_one_that_waits_for_its_chips_is_run_again_by_no_order() -> None:
    place = Place()
    place.run()
    place.fault()
    reason = f"job: {JOB} is asked to stop already, and is run again then: {place.job().why}"
    assert place.order("rerun_job").reason == reason
    place.stop()
    why = "the reset of npu0, npu1 for RestartNPU"
    assert place.order("rerun_job").reason == f"job: {JOB} waits for its chips, and is run then: {why}"


def test_an_order_that_is_refused_is_not_stored() -> None:
    place = Place()
    place.run(WATCHED)
    stored = len(place.records)
    place.order("stop_job")
    place.do(held("npu0", JOB))
    assert len(place.records) == stored


def test_a_stopped_one_whose_supervisor_ran_it_while_nobody_could_be_asked_is_stopped_again() -> None:
    place = Place()
    place.run()
    place.order("stop_job")
    place.stop()
    place.say(RunReportKind.STARTED)
    assert place.job().wanted is Wanted.STOP
