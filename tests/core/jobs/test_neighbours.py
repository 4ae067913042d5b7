"""Two jobs on chips that are reset together: who makes way for whom, and when."""

import pytest

from nodeagent.core.model import JobPolicy, JobStage, RunReportKind, Wanted
from tests.core.build import held, order, signal
from tests.core.jobs.place import IN_PLACE, JOB, OTHER, WATCHED, YIELDS, Place
from tests.core.resets.ring import BROKEN


def side_by_side(policy: JobPolicy, own: JobPolicy = IN_PLACE) -> Place:
    """One on npu0, which will break, and one beside it on npu1."""
    place = Place()
    place.run(own, JOB, "npu0")
    place.run(policy, OTHER, "npu1")
    return place


def breaks(place: Place) -> None:
    place.fault()
    place.wait(1)
    place.poll_all(BROKEN)


def test_one_that_yields_is_asked_once_nobody_else_is_left() -> None:
    place = side_by_side(YIELDS)
    breaks(place)
    assert (place.stage(JOB), place.stage(OTHER)) == (JobStage.ASKED, JobStage.RUNNING)
    place.stop(JOB, "npu0")
    assert (place.stage(JOB), place.stage(OTHER)) == (JobStage.HOLDING, JobStage.ASKED)
    assert place.job(OTHER).device_id == "die1"
    place.stop(OTHER, "npu1")
    assert len(place.actions) == 1
    place.help()
    assert [place.job(name).wanted for name in (JOB, OTHER)] == [Wanted.RUN, Wanted.RUN]


def test_beside_one_that_does_not_yield_nobody_is_asked() -> None:
    place = side_by_side(IN_PLACE)
    breaks(place)
    place.wait(30)
    assert [place.job(name).wanted for name in (JOB, OTHER)] == [Wanted.RUN, Wanted.RUN]
    assert place.hindered() == (
        f"npu0 is used by python (pid 7, job {JOB})",
        f"npu0 is used by the job {JOB}",
        f"npu1 is used by python (pid 7, job {OTHER})",
        f"npu1 is used by the job {OTHER}",
    )


def test_one_that_stops_yields_in_vain_to_nobody_who_does_not_stop() -> None:
    place = side_by_side(YIELDS)
    breaks(place)
    place.wait(61)
    assert [place.job(name).wanted for name in (JOB, OTHER)] == [Wanted.LEAVE, Wanted.RUN]
    place.do(held("npu0", None))
    assert place.stage(OTHER) is JobStage.RUNNING
    place.leave(JOB, 86)
    assert place.stage(OTHER) is JobStage.ASKED


@pytest.mark.parametrize("holder", ["slurm:9.0", ""])
def test_beside_a_job_without_a_supervisor_nobody_makes_way(holder: str) -> None:
    place = Place(chips=3)
    place.run(IN_PLACE, JOB, "npu0")
    place.run(YIELDS, OTHER, "npu1")
    place.do(held("npu2", holder))
    breaks(place)
    place.stop(JOB, "npu0")
    assert place.stage(OTHER) is JobStage.RUNNING
    place.do(held("npu2", None))
    assert place.stage(OTHER) is JobStage.ASKED


def test_nor_beside_one_that_is_only_watched() -> None:
    place = Place(chips=3)
    place.run(IN_PLACE, JOB, "npu0")
    place.run(YIELDS, OTHER, "npu1")
    place.run(WATCHED, "slurm:9.0", "npu2")
    breaks(place)
    place.stop(JOB, "npu0")
    assert place.stage(OTHER) is JobStage.RUNNING


def test_while_something_else_blocks_the_reset_nobody_makes_way() -> None:
    place = side_by_side(YIELDS)
    place.do(order("quiesce", "node"))
    breaks(place)
    place.stop(JOB, "npu0")
    assert place.stage(OTHER) is JobStage.RUNNING
    place.do(order("resume", "node"))
    assert place.stage(OTHER) is JobStage.ASKED


def test_before_a_poll_has_shown_the_fault_nobody_is_asked() -> None:
    place = side_by_side(YIELDS)
    place.do(signal(BROKEN))
    assert [place.stage(name) for name in (JOB, OTHER)] == [JobStage.RUNNING, JobStage.RUNNING]
    place.poll(BROKEN)
    assert [place.stage(name) for name in (JOB, OTHER)] == [JobStage.ASKED, JobStage.RUNNING]


def test_several_that_yield_are_asked_together() -> None:
    place = Place(chips=3)
    place.run(IN_PLACE, JOB, "npu0")
    place.run(YIELDS, OTHER, "npu1")
    place.run(YIELDS, "slurm:9.0", "npu2")
    breaks(place)
    place.stop(JOB, "npu0")
    assert [place.stage(name) for name in (OTHER, "slurm:9.0")] == [JobStage.ASKED, JobStage.ASKED]


def test_one_that_shares_the_faulty_chip_is_asked_as_its_own() -> None:
    place = Place()
    place.run(IN_PLACE, JOB, "npu0")
    place.begin(IN_PLACE, OTHER, "npu0", "npu1")
    place.fault()
    assert [place.stage(name) for name in (JOB, OTHER)] == [JobStage.ASKED, JobStage.ASKED]


def test_a_neighbour_whose_own_chip_is_well_after_a_failed_reset_runs_on() -> None:
    place = side_by_side(YIELDS)
    breaks(place)
    place.stop(JOB, "npu0")
    place.stop(OTHER, "npu1")
    for _ in range(2):
        place.wait(1)
        place.result()
        place.wait(1)
        place.poll_all(BROKEN)
        place.wait(151)
        place.poll_all(BROKEN)
        place.wait(31)
        place.poll_all(BROKEN)
    assert [place.job(name).wanted for name in (JOB, OTHER)] == [Wanted.LEAVE, Wanted.RUN]


def test_a_neighbour_that_stopped_and_started_again_keeps_its_count_of_runs() -> None:
    place = side_by_side(YIELDS)
    breaks(place)
    place.stop(JOB, "npu0")
    place.stop(OTHER, "npu1")
    place.help()
    place.say(RunReportKind.STARTED, OTHER)
    assert (place.job(OTHER).run, place.job_events()[-1]) == (2, ("job_rerun", "run 2 has started"))
