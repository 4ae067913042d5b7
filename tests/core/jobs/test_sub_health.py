"""What a supervisor learns of a chip that works, and not well, and of what asks something of its job."""

from nodeagent.core.model import JobStage
from tests.core.jobs.place import BOTH, OTHER, Place

FAULT = "SubHealthFault"


def test_a_fault_that_comes_under_a_job_is_named() -> None:
    place = Place()
    place.run(BOTH)
    assert place.job().sub_health == ""
    place.fault(FAULT)
    job = place.job()
    assert (job.sub_health, job.stage) == (f"npu0 has {FAULT}", JobStage.RUNNING)
    assert (job.handling, job.handling_device, job.handling_code) == ("JOB_STRATEGY", "npu0", FAULT)


def test_one_that_was_there_before_the_job_began_is_not() -> None:
    place = Place()
    place.fault(FAULT)
    place.wait(1)
    place.run(BOTH)
    assert (place.job().sub_health, place.job().handling) == ("", "JOB_STRATEGY")


def test_one_of_another_job_is_not_either() -> None:
    place = Place()
    place.run(BOTH)
    place.run(BOTH, OTHER, "npu1")
    place.fault(FAULT, "npu1")
    assert (place.job().sub_health, place.job(OTHER).sub_health) == ("", f"npu1 has {FAULT}")


def test_a_worse_fault_does_not_hide_it() -> None:
    place = Place()
    place.run(BOTH)
    place.fault(FAULT)
    place.fault("RestartRequest")
    job = place.job()
    assert (job.sub_health, job.handling_code) == (f"npu0 has {FAULT}", "RestartRequest")


def test_once_it_is_gone_nothing_is_named() -> None:
    place = Place()
    place.run(BOTH)
    place.fault(FAULT)
    place.recover(FAULT)
    assert (place.job().sub_health, place.job().handling_code) == ("", "")
