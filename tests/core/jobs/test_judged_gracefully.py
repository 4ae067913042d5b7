"""``in_place_registered``: chips that only jobs use which may be run again are judged as in mode graceful."""

import pytest

from nodeagent.core.catalog.settings import Mode
from nodeagent.core.engine import Engine
from nodeagent.core.model import Handling, JobStage, Verdict
from tests.core.build import ns, stands
from tests.core.jobs.place import IN_PLACE, MOVES, OTHER, WATCHED, Place, job_catalog

OUT = (Verdict.ISOLATE, Handling.RESCHEDULE)
REPAIR = (Verdict.ISOLATE, Handling.STOP_RESET_RESTART)


def place_of(registered: bool = True) -> Place:
    return Place(job_catalog(registered=registered))


def test_a_fault_says_stop_and_reset_instead_of_reschedule() -> None:
    place = place_of()
    place.run()
    place.fault()
    assert stands(place.engine)[1:] == REPAIR


def test_as_shipped_it_does_not() -> None:
    place = place_of(registered=False)
    place.run()
    place.fault()
    assert stands(place.engine)[1:] == OUT


def test_a_claim_of_a_job_that_has_no_supervisor_keeps_the_nodes_mode() -> None:
    place = place_of()
    place.claim("npu0", "slurm:9")
    place.run()
    place.fault()
    assert stands(place.engine)[1:] == OUT
    place.claim("npu0", "slurm:9", claimed=False)
    assert stands(place.engine)[1:] == REPAIR


def test_its_own_claim_does_not() -> None:
    place = place_of()
    place.claim("npu0", "slurm:7")
    place.run()
    place.fault()
    assert stands(place.engine)[1:] == REPAIR


@pytest.mark.parametrize("policy", [WATCHED, MOVES])
def test_one_that_may_not_be_stopped_keeps_the_nodes_mode(policy: object) -> None:
    place = place_of()
    place.begin(IN_PLACE)
    place.begin(policy, OTHER)  # type: ignore[arg-type] # one of the policies
    place.fault()
    assert stands(place.engine)[1:] == OUT


def test_a_chip_that_nobody_uses_keeps_the_nodes_mode() -> None:
    place = place_of()
    place.begin(IN_PLACE)
    place.fault("RestartNPU", "npu1")
    assert stands(place.engine, "npu1")[1:] == OUT


def test_once_the_job_has_ended_the_nodes_mode_is_back() -> None:
    place = place_of()
    place.run()
    place.fault()
    place.leave()
    assert stands(place.engine)[1:] == OUT


def test_a_fault_of_the_business_restarts_the_job_and_is_reset_in_its_time() -> None:
    place = place_of()
    place.run()
    place.fault("RestartBusiness")
    found = []
    for seconds in (0, 60.001):
        place.wait(seconds)
        found.append((stands(place.engine)[2], place.stage()))
    assert found == [
        (Handling.RESTART_JOB, JobStage.ASKED),
        (Handling.STOP_RESET_RESTART, JobStage.LEAVING),
    ]


def test_a_fault_that_was_there_before_the_job_is_as_far_on_as_it_would_be() -> None:
    place = place_of()
    place.fault("RestartBusiness")
    place.wait(61)
    assert stands(place.engine)[1:] == OUT
    place.begin()
    assert stands(place.engine)[2] is Handling.STOP_RESET_RESTART


def test_what_falls_due_by_the_other_mode_falls_due_now_and_not_in_the_past() -> None:
    """A job that is asked in the past would have had its time to stop already."""
    place = place_of()
    place.claim("npu0", "slurm:9")
    place.run(MOVES)
    place.fault("RestartBusiness")
    place.wait(300)
    before = len(place.events)
    place.claim("npu0", "slurm:9", claimed=False)
    place.leave()
    place.begin()
    later = place.events[before:]
    assert stands(place.engine)[2] is Handling.STOP_RESET_RESTART
    assert {event.at_ns for event in later} == {ns(place.at_s)}


def test_a_compaction_moves_no_fault_on_while_not_all_of_its_jobs_are_back() -> None:
    place = place_of()
    place.begin(IN_PLACE)
    place.begin(WATCHED, OTHER)
    place.fault("RestartBusiness")
    place.wait(300)
    compacted = Engine({place.catalog.digest: place.catalog})
    for carried in place.engine.carry():
        compacted.replay(place.engine.now_ns, carried)
    compacted.resume(ns(place.at_s))
    assert compacted.view() == place.engine.view()


def test_its_times_are_the_same_after_a_compaction() -> None:
    place = place_of()
    place.run()
    place.fault("RestartBusiness")
    place.stop()
    compacted = Engine({place.catalog.digest: place.catalog})
    for carried in place.engine.carry():
        compacted.replay(place.engine.now_ns, carried)
    compacted.resume(ns(place.at_s))
    assert compacted.next_deadline() == place.engine.next_deadline() == ns(place.at_s + 60) + 1


def test_in_mode_graceful_nothing_is_different() -> None:
    place = Place(job_catalog(how=Mode.GRACEFUL, registered=True))
    place.run()
    place.fault()
    assert stands(place.engine)[1:] == REPAIR
