"""A job on a chip that breaks: asked to stop, held while the chip is reset, run again."""

import pytest

from nodeagent.core.catalog.settings import Mode
from nodeagent.core.model import (
    ActionState,
    EventKind,
    Holder,
    JobStage,
    ProcessesListed,
    Recommendation,
    ResetMode,
    RunReportKind,
    Wanted,
)
from tests.core.build import held, order
from tests.core.jobs.place import BOTH, IN_PLACE, JOB, MOVES, WATCHED, Place, job_catalog
from tests.core.resets.ring import BROKEN


def test_it_is_asked_as_soon_as_its_chips_reset_is_proposed() -> None:
    place = Place()
    place.run()
    place.fault()
    job = place.job()
    assert (job.stage, job.wanted, job.run) == (JobStage.ASKED, Wanted.STOP, 1)
    assert (job.code, job.device_id, job.handling) == (BROKEN, "die0", "RESCHEDULE")
    assert place.job_events()[-1] == ("job_asked", "the reset of npu0, npu1 for RestartNPU")


def test_it_is_held_once_it_has_stopped_and_no_process_of_it_is_left() -> None:
    place = Place()
    place.run()
    place.fault()
    place.say(RunReportKind.STOPPED, status=143)
    assert (place.stage(), place.job_events()[-1][0]) == (JobStage.ASKED, "job_asked")
    place.do(held("npu0", None))
    assert (place.stage(), place.job().wanted, place.job().run) == (JobStage.HOLDING, Wanted.HOLD, 2)
    assert place.job_events()[-2:] == [
        ("job_asked", "the reset of npu0, npu1 for RestartNPU"),
        ("job_stopped", "run 1 stopped with status 143"),
    ]


def test_a_process_of_another_job_does_not_keep_it() -> None:
    place = Place()
    place.run()
    place.fault()
    place.do(held("npu0", "slurm:8.0"))
    place.say(RunReportKind.STOPPED)
    assert place.stage() is JobStage.HOLDING


def test_while_nobody_knows_who_holds_its_chip_it_has_not_stopped() -> None:
    place = Place()
    place.run()
    place.fault()
    place.restart()
    place.say(RunReportKind.STOPPED)
    assert place.stage() is JobStage.ASKED
    place.do(held("npu0", None))
    assert place.stage() is JobStage.HOLDING


def test_where_no_cgroup_tells_its_processes_any_bare_process_keeps_it() -> None:
    place = Place()
    place.run(IN_PLACE, "pid:70")
    place.own("pid:70")
    place.fault()
    other = Holder(pid=8, start_time=1, command="python")
    place.do(ProcessesListed(device="npu0", holders=(other,)))
    place.say(RunReportKind.STOPPED, "pid:70")
    assert place.stage("pid:70") is JobStage.ASKED
    place.do(held("npu0", None))
    assert place.stage("pid:70") is JobStage.HOLDING


def test_its_claim_does_not_stand_in_the_way_once_it_is_held_and_nobody_waits_for_the_announcement() -> None:
    place = Place()
    place.claim("npu0", "slurm:7")
    place.claim("npu1", "slurm:7")
    place.run()
    place.fault()
    place.wait(1)
    place.poll_all(BROKEN)
    assert place.actions == []
    place.stop()
    assert [action.devices for action in place.actions] == [("die0", "die1")]


def test_until_then_it_is_named_among_what_the_reset_waits_for() -> None:
    place = Place()
    place.claim("npu0", "slurm:7")
    place.run()
    place.do(held("npu0", None))
    place.fault()
    place.wait(20)
    place.poll_all(BROKEN)
    place.wait(10.001)
    assert place.hindered() == (f"npu0 is used by the job {JOB}, which is asked to stop",)


def test_a_job_beside_it_that_only_claims_its_chip_keeps_the_announcement_and_the_reset() -> None:
    place = Place()
    place.run()
    place.fault()
    place.claim("npu1", "slurm:8")
    place.leave()
    place.do(held("npu0", None))
    place.wait(20)
    place.poll_all(BROKEN)
    place.wait(10.001)
    assert place.hindered() == ("npu1 is claimed by the training slurm:8",)


def test_it_is_run_again_once_the_reset_is_verified() -> None:
    place = Place()
    place.run()
    place.fault()
    place.wait(1)
    place.poll_all(BROKEN)
    place.stop()
    place.help()
    job = place.job()
    assert (job.stage, job.wanted, job.run) == (JobStage.RUNNING, Wanted.RUN, 2)
    place.wait(1)
    place.say(RunReportKind.STARTED)
    assert place.job_events()[-1] == ("job_rerun", "run 2 has started")


def test_how_long_each_step_took_is_in_the_event_of_the_new_run() -> None:
    place = Place()
    place.run()
    place.fault()
    place.wait(1)
    place.poll_all(BROKEN)
    place.stop()
    place.help()
    place.say(RunReportKind.STARTED)
    (event,) = [event for event in place.events if event.kind is EventKind.JOB_RERUN]
    assert event.evidence["stopped_after_s"] == "1.000"
    assert event.evidence["granted_after_s"] == "7.000"


def test_between_the_grant_and_the_start_of_its_command_nothing_is_reset() -> None:
    place = Place()
    place.begin()
    place.propose_and_start()
    assert place.actions == []
    assert place.stage() is JobStage.ASKED


def test_a_second_attempt_keeps_it_waiting() -> None:
    place = Place()
    place.run()
    place.fault()
    place.wait(1)
    place.poll_all(BROKEN)
    place.stop()
    place.result(ActionState.FAILED, "the driver says no")
    assert place.stage() is JobStage.HOLDING
    place.wait(31)
    place.poll_all(BROKEN)
    place.help()
    assert (place.stage(), len(place.actions)) == (JobStage.RUNNING, 2)


def test_once_asked_it_stops_though_its_fault_has_gone_meanwhile_and_is_run_again_at_once() -> None:
    place = Place()
    place.run()
    place.fault()
    place.recover()
    assert place.stage() is JobStage.ASKED
    place.stop()
    assert (place.stage(), place.job().run) == (JobStage.RUNNING, 2)


def test_one_that_ends_by_itself_while_it_is_asked_has_stopped() -> None:
    place = Place()
    place.run()
    place.fault()
    place.do(held("npu0", None))
    place.say(RunReportKind.EXITED, status=1)
    assert place.stage() is JobStage.HOLDING


def test_one_that_ends_by_itself_is_granted_its_next_run_at_once() -> None:
    place = Place()
    place.run()
    place.say(RunReportKind.EXITED, status=1)
    assert (place.stage(), place.job().run) == (JobStage.RUNNING, 2)
    assert place.job_events()[-1] == ("job_stopped", "run 1 ended by itself with status 1")


def test_one_that_ends_by_itself_beside_a_reset_makes_room_for_it_though_it_need_not() -> None:
    place = Place()
    place.run(IN_PLACE, JOB, "npu1")
    place.fault()
    place.wait(20)
    place.poll_all(BROKEN)
    place.wait(10.001)
    assert (place.stage(), place.actions) == (JobStage.RUNNING, [])
    place.do(held("npu1", None))
    place.say(RunReportKind.EXITED, status=1)
    assert (place.stage(), len(place.actions)) == (JobStage.HOLDING, 1)
    place.help()
    assert place.stage() is JobStage.RUNNING


def test_one_that_is_only_watched_makes_room_for_no_reset_between_two_runs() -> None:
    place = Place()
    place.run(WATCHED, JOB, "npu1")
    place.fault()
    place.wait(20)
    place.poll_all(BROKEN)
    place.wait(10.001)
    place.do(held("npu1", None))
    place.say(RunReportKind.EXITED, status=1)
    assert (place.stage(), place.job().run, place.actions) == (JobStage.RUNNING, 2, [])


def test_one_that_is_only_watched_does_not_begin_while_its_chip_is_being_reset() -> None:
    place = Place()
    place.propose_and_start()
    place.begin(WATCHED)
    assert (place.stage(), len(place.actions)) == (JobStage.HOLDING, 1)
    place.wait(5)
    place.result()
    assert place.stage() is JobStage.RUNNING


@pytest.mark.parametrize("policy", [WATCHED, MOVES])
def test_only_one_that_allows_it_is_asked_to_stop(policy: object) -> None:
    place = Place(job_catalog(how=Mode.GRACEFUL))
    place.run(policy)  # type: ignore[arg-type] # one of the policies
    place.fault()
    assert place.stage() is JobStage.RUNNING


@pytest.mark.parametrize("mode", [ResetMode.OFF, ResetMode.DRY_RUN, ResetMode.ASK])
def test_for_a_reset_that_will_not_be_done_nobody_is_stopped(mode: ResetMode) -> None:
    place = Place(job_catalog(mode))
    place.run()
    place.fault()
    place.wait(31)
    assert place.stage() is JobStage.RUNNING


def test_for_one_that_a_person_approves_it_is() -> None:
    place = Place(job_catalog(ResetMode.ASK, how=Mode.GRACEFUL))
    place.run()
    place.fault()
    place.do(order("approve", "die0/reset#1"))
    assert place.stage() is JobStage.ASKED


def test_for_one_that_a_person_orders_it_is() -> None:
    place = Place()
    place.run()
    place.do(order("reset", "npu0"))
    place.poll_all()
    assert (place.stage(), place.job().code) == (JobStage.ASKED, "")


def test_a_fault_that_waits_for_its_chip_to_be_free_stops_nobody() -> None:
    place = Place(job_catalog(how=Mode.GRACEFUL))
    place.run()
    place.fault("FreeRestartNPU")
    place.wait(100)
    assert place.stage() is JobStage.RUNNING


def test_when_work_is_moved_such_a_fault_is_healed_in_place_as_restart_npu() -> None:
    place = Place()
    place.run(BOTH)
    place.fault("FreeRestartNPU")
    assert (place.stage(), place.job().code) == (JobStage.ASKED, "FreeRestartNPU")
    place.stop()
    place.wait(1)
    place.poll_all("FreeRestartNPU")
    place.help()
    assert (place.stage(), place.job().run, len(place.actions)) == (JobStage.RUNNING, 2, 1)


def test_between_two_runs_such_a_chip_is_free_and_is_reset() -> None:
    place = Place(job_catalog(how=Mode.GRACEFUL))
    place.run()
    place.fault("FreeRestartNPU")
    place.do(held("npu0", None))
    place.say(RunReportKind.EXITED, status=1)
    assert place.stage() is JobStage.HOLDING
    place.wait(1)
    place.poll_all("FreeRestartNPU")
    place.help()
    assert (place.stage(), len(place.actions)) == (JobStage.RUNNING, 1)


def test_a_fault_that_restarts_the_job_does_so_without_a_reset() -> None:
    place = Place(job_catalog(how=Mode.GRACEFUL))
    place.run()
    place.fault("RestartBusiness")
    assert (place.stage(), place.job().code) == (JobStage.ASKED, "RestartBusiness")
    place.stop()
    assert (place.stage(), place.job().run, place.actions) == (JobStage.RUNNING, 2, [])


def test_one_that_stays_stops_the_next_run_only_for_its_reset() -> None:
    place = Place(job_catalog(how=Mode.GRACEFUL))
    place.run()
    place.fault("RestartBusiness")
    place.stop()
    place.do(held("npu0", JOB))
    place.wait(50)
    place.poll_all("RestartBusiness")
    assert place.stage() is JobStage.RUNNING
    place.wait(11)
    place.poll_all("RestartBusiness")
    assert (place.stage(), place.job().handling) == (JobStage.ASKED, "STOP_RESET_RESTART")


def test_one_that_comes_again_stops_the_next_run_too() -> None:
    place = Place(job_catalog(how=Mode.GRACEFUL))
    place.run()
    place.fault("RestartBusiness")
    place.stop()
    place.wait(5)
    place.recover("RestartBusiness")
    place.wait(5)
    place.fault("RestartBusiness")
    assert (place.stage(), place.job().run) == (JobStage.ASKED, 2)


def test_beside_an_unsupervised_job_nothing_is_different() -> None:
    place = Place()
    place.claim("npu0", "slurm:9")
    place.do(held("npu0", "slurm:9.0"))
    place.fault()
    place.wait(20)
    place.poll_all(BROKEN)
    place.wait(10.001)
    assert place.hindered() == (
        "npu0 is used by python (pid 7, job slurm:9.0)",
        "npu0 is claimed by the training slurm:9",
    )


def test_a_registered_job_that_stops_by_itself_is_not_ended_by_force() -> None:
    place = Place(job_catalog(terminate_registered=True))
    place.claim("npu0", "slurm:7")
    place.run(BOTH)
    place.propose_and_start()
    assert place.actions == []
    place.stop()
    assert [action.holders for action in place.actions] == [()]


def test_one_that_did_not_leave_is_ended_by_force_where_that_is_wanted() -> None:
    place = Place(job_catalog(terminate_registered=True))
    place.claim("npu0", "slurm:7")
    place.run()
    place.fault()
    place.wait(61)
    place.poll_all(BROKEN)
    assert [[holder.job for holder in action.holders] for action in place.actions] == [[JOB]]


def test_what_it_does_is_what_is_recommended() -> None:
    place = Place()
    place.run()
    place.fault()
    assert place.job().recommended is Recommendation.HOLD
