"""RestartRequest: inference makes its request again for a minute; training is handled at once."""

import pytest

from nodeagent.core.catalog.settings import Mode
from nodeagent.core.engine import Engine
from nodeagent.core.model import Claims, Handling, JobStage, Recommendation, Verdict, Wanted
from tests.core.build import held, stands
from tests.core.jobs.place import BOTH, IN_PLACE, JOB, MOVES, OTHER, Place, job_catalog

FAULT = "RestartRequest"
RERUN = (Verdict.NO_NEW_JOBS, Handling.RERUN_REQUEST)
OUT = (Verdict.ISOLATE, Handling.RESCHEDULE)
GRACEFUL = job_catalog(how=Mode.GRACEFUL)


def test_training_that_may_be_stopped_is_stopped_at_once_for_a_reset() -> None:
    place = Place()
    place.run(BOTH)
    place.fault(FAULT)
    assert (stands(place.engine)[1:], place.stage(), place.job().code) == (OUT, JobStage.ASKED, FAULT)
    place.stop()
    place.wait(1)
    place.poll_all(FAULT)
    place.help()
    assert (place.stage(), place.job().run, len(place.actions)) == (JobStage.RUNNING, 2, 1)


def test_training_that_may_only_be_run_elsewhere_leaves_at_once() -> None:
    place = Place()
    place.run(MOVES)
    place.fault(FAULT)
    assert (place.job().wanted, place.job().isolated) == (Wanted.LEAVE, True)


@pytest.mark.parametrize("kind", ["inference", "notebook", "other"])
def test_a_job_of_another_kind_has_a_minute_to_make_its_request_again(kind: str) -> None:
    place = Place()
    place.begin(MOVES, kind=kind)
    place.fault(FAULT)
    place.wait(59)
    assert (stands(place.engine)[1:], place.stage()) == (RERUN, JobStage.RUNNING)
    assert (place.job().handling, place.job().recommended) == (
        "RERUN_REQUEST",
        Recommendation.RERUN_REQUEST,
    )
    place.wait(1.001)
    assert (stands(place.engine)[1:], place.job().wanted) == (OUT, Wanted.LEAVE)


def test_training_next_to_inference_on_one_chip_does_not_take_its_minute() -> None:
    place = Place()
    place.begin(MOVES)
    place.begin(MOVES, OTHER, kind="inference")
    place.fault(FAULT)
    assert (stands(place.engine)[1:], place.stage()) == (RERUN, JobStage.RUNNING)


@pytest.mark.parametrize(("kind", "stance"), [("training", OUT), ("inference", RERUN), ("", RERUN)])
def test_a_job_without_a_supervisor_is_of_the_kind_that_its_hook_has_named(kind: str, stance: object) -> None:
    place = Place()
    place.do(Claims(device="npu0", job="slurm:9", kind=kind, claimed=True))
    place.fault(FAULT)
    assert stands(place.engine)[1:] == stance


def test_a_chip_without_a_job_keeps_its_minute() -> None:
    place = Place()
    place.fault(FAULT)
    assert stands(place.engine)[1:] == RERUN


def test_in_mode_graceful_training_is_run_again_at_once_and_reset_only_after_a_minute() -> None:
    place = Place(GRACEFUL)
    place.run()
    place.fault(FAULT)
    assert (stands(place.engine)[1:], place.stage(), place.job().handling) == (
        RERUN,
        JobStage.ASKED,
        "RESTART_JOB",
    )
    place.stop()
    assert (place.stage(), place.job().run, place.actions) == (JobStage.RUNNING, 2, [])
    place.do(held("npu0", JOB))
    place.wait(61)
    place.poll_all(FAULT)
    assert (place.stage(), place.job().handling) == (JobStage.ASKED, "STOP_RESET_RESTART")


def test_in_mode_graceful_inference_is_not_stopped_for_a_minute() -> None:
    place = Place(GRACEFUL)
    place.begin(IN_PLACE, kind="inference")
    place.fault(FAULT)
    place.wait(59)
    assert (place.stage(), place.job().handling) == (JobStage.RUNNING, "RERUN_REQUEST")


def test_a_compaction_moves_no_fault_on_while_not_all_of_its_jobs_are_back() -> None:
    place = Place()
    place.begin(MOVES)
    place.begin(MOVES, OTHER)
    place.fault(FAULT)
    place.wait(300)
    compacted = Engine({place.catalog.digest: place.catalog})
    for carried in place.engine.carry():
        compacted.replay(place.engine.now_ns, carried)
    assert compacted.view() == place.engine.view()
