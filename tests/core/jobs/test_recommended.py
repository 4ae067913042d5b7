"""What a scheduler does best, of all that is known of a job."""

import pytest

from nodeagent.core.machines.job_views import recommended
from nodeagent.core.model import Handling, JobStage, Recommendation


@pytest.mark.parametrize(
    ("handling", "best"),
    [
        (Handling.NONE, Recommendation.NONE),
        (Handling.JOB_STRATEGY, Recommendation.NONE),
        (Handling.RERUN_REQUEST, Recommendation.RERUN_REQUEST),
        (Handling.RESTART_JOB, Recommendation.RESTART_IN_PLACE),
        (Handling.RESET_WHEN_IDLE, Recommendation.NONE),
        (Handling.STOP_RESET_RESTART, Recommendation.RESTART_IN_PLACE),
        (Handling.RESCHEDULE, Recommendation.RESCHEDULE),
    ],
)
@pytest.mark.parametrize("stage", [None, JobStage.RUNNING])
def test_of_one_that_runs_the_handling_says_it(
    handling: Handling, best: Recommendation, stage: JobStage | None
) -> None:
    assert recommended(handling, False, stage) is best


def test_one_that_moves_from_a_chip_that_is_out_of_service_is_told_so() -> None:
    assert recommended(Handling.RESCHEDULE, True) is Recommendation.RESCHEDULE_ISOLATED


def test_that_a_chip_takes_no_new_work_moves_nobody() -> None:
    assert recommended(Handling.NONE, True) is Recommendation.NONE


@pytest.mark.parametrize("stage", [JobStage.ASKED, JobStage.HOLDING])
def test_one_that_is_healed_here_is_let_be(stage: JobStage) -> None:
    assert recommended(Handling.RESCHEDULE, True, stage) is Recommendation.HOLD


@pytest.mark.parametrize(
    ("isolated", "best"),
    [(False, Recommendation.RESCHEDULE), (True, Recommendation.RESCHEDULE_ISOLATED)],
)
def test_one_that_leaves_is_run_elsewhere_whatever_its_chips_are(
    isolated: bool, best: Recommendation
) -> None:
    assert recommended(Handling.NONE, isolated, JobStage.LEAVING) is best


def test_of_one_whose_supervisor_died_its_scheduler_knows_as_much() -> None:
    assert recommended(Handling.RESCHEDULE, False, JobStage.ENDED) is Recommendation.NONE


def test_of_one_that_ended_its_status_says_it_and_not_its_chips() -> None:
    assert recommended(Handling.RESCHEDULE, True, JobStage.ENDED, 0) is Recommendation.NONE
