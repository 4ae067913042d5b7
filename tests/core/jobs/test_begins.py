"""A job begins, is connected again, and ends: what is kept of it, and what it uses."""

import pytest

from nodeagent.core.model import (
    EventKind,
    JobStage,
    Peer,
    Recommendation,
    Refused,
    RunReportKind,
    Started,
    Wanted,
)
from nodeagent.core.state import limits
from tests.core.build import DAY_S, held
from tests.core.jobs.place import IN_PLACE, JOB, MOVES, OTHER, WATCHED, Place
from tests.core.resets.ring import BROKEN


def test_one_on_well_chips_is_granted_at_once() -> None:
    place = Place()
    place.begin()
    job = place.job()
    assert (job.stage, job.wanted, job.run) == (JobStage.RUNNING, Wanted.RUN, 1)
    assert place.job_events() == [("job_begun", "its supervisor has begun")]


def test_the_first_start_of_a_command_is_no_event() -> None:
    place = Place()
    place.begin()
    assert place.say(RunReportKind.STARTED) == []


def test_its_event_is_of_the_node_and_names_it() -> None:
    place = Place()
    place.begin()
    (event,) = [event for event in place.events if event.kind is EventKind.JOB_BEGUN]
    assert event.job is not None
    assert (event.device, event.job.name, event.job.run) == ("node", JOB, 1)


def test_it_uses_what_a_hook_claimed_for_its_job_besides_what_it_holds() -> None:
    place = Place(chips=3)
    place.claim("npu1", "slurm:7")
    place.claim("npu2", "slurm:70")
    place.begin(IN_PLACE, JOB, "npu0")
    assert place.job().devices == ("die0", "die1")


def test_a_second_supervisor_of_one_job_uses_what_is_claimed_for_the_job() -> None:
    place = Place()
    place.claim("npu1", "slurm:7")
    place.begin(IN_PLACE, JOB, "npu0")
    place.begin(IN_PLACE, f"{JOB}/99", "npu0")
    assert place.job(f"{JOB}/99").devices == ("die0", "die1")


def test_a_chip_that_nobody_knows_is_passed_over() -> None:
    place = Place()
    place.begin(IN_PLACE, JOB, "npu0", "npu7")
    assert place.job().devices == ("die0",)


def test_its_chips_only_ever_grow() -> None:
    place = Place()
    place.begin(IN_PLACE, JOB, "npu0")
    place.begin(IN_PLACE, JOB, "npu1")
    assert place.job().devices == ("die0", "die1")


def test_a_chip_that_says_later_which_part_it_is_stays_its_own() -> None:
    place = Place(chips=1)
    place.fault("RestartRequest", "npu5")
    place.begin(IN_PLACE, JOB, "npu5")
    place.names.append("npu5")
    place.list_all()
    assert place.job().devices == ("die1",)


def test_connected_again_it_is_as_it_was_and_tells_nothing() -> None:
    place = Place()
    place.run()
    before = place.job()
    place.begin(is_running=True)
    assert place.job() == before
    assert place.job_events() == [("job_begun", "its supervisor has begun")]


def test_one_that_runs_already_is_taken_as_running() -> None:
    place = Place()
    place.begin(run=3, is_running=True)
    assert (place.stage(), place.job().run) == (JobStage.RUNNING, 3)


def test_a_run_that_was_made_while_nobody_could_be_asked_counts() -> None:
    place = Place()
    place.fault()
    place.begin()
    assert place.stage() is JobStage.HOLDING
    place.begin(is_running=True)
    assert (place.stage(), place.job().wanted) == (JobStage.ASKED, Wanted.STOP)


def test_one_that_is_about_to_make_a_later_run_has_ended_the_former() -> None:
    place = Place()
    place.run()
    place.do(held("npu0", None))
    place.fault()
    place.begin(run=2)
    assert (place.stage(), place.job().run) == (JobStage.HOLDING, 2)


def test_another_supervisor_of_that_name_that_begins_anew_is_another_job() -> None:
    place = Place()
    place.run()
    place.say(RunReportKind.SUSPENDED)
    place.begin(peer=Peer(pid=71, start_time=2, uid=1000))
    assert (place.job().said, place.job().run) == (0, 1)
    assert place.job_events()[2:] == [
        ("job_ended", "a new supervisor has begun, which knows nothing of it"),
        ("job_begun", "its supervisor has begun"),
    ]


def test_one_that_was_started_again_before_it_ever_said_anything_goes_on() -> None:
    place = Place()
    place.fault()
    place.begin()
    place.begin(peer=Peer(pid=71, start_time=2, uid=1000))
    assert (place.stage(), place.job().run) == (JobStage.HOLDING, 1)
    assert place.job_events() == [("job_begun", "its supervisor has begun")]


def test_another_one_is_not_told_to_leave_for_what_one_before_it_left() -> None:
    place = Place()
    place.do(held("npu1", OTHER))
    place.fault()
    place.begin()
    place.wait(601)
    assert place.stage() is JobStage.LEAVING
    place.recover()
    place.poll_all()
    place.begin(peer=Peer(pid=71, start_time=2, uid=1000))
    assert (place.stage(), place.job().run) == (JobStage.RUNNING, 1)


def test_one_that_was_started_again_on_its_journal_goes_on() -> None:
    place = Place()
    place.run()
    place.say(RunReportKind.SUSPENDED)
    place.begin(peer=Peer(pid=71, start_time=2, uid=1000), run=2)
    assert (place.job().said, place.job().run) == (2, 2)


@pytest.mark.parametrize(
    ("status", "recommended"),
    [
        (0, Recommendation.NONE),
        (1, Recommendation.NONE),
        (75, Recommendation.RESCHEDULE),
        (86, Recommendation.RESCHEDULE_ISOLATED),
        (87, Recommendation.GIVE_UP),
    ],
)
def test_how_it_ended_says_what_its_scheduler_does_best(status: int, recommended: Recommendation) -> None:
    place = Place()
    place.run()
    place.leave(status=status)
    job = place.job()
    assert (job.stage, job.wanted, job.devices) == (JobStage.ENDED, None, ())
    assert (job.status, job.recommended) == (status, recommended)


def test_one_that_has_ended_uses_nothing_and_says_nothing() -> None:
    place = Place()
    place.run()
    place.leave()
    assert place.say(RunReportKind.STARTED) == []
    place.do(held("npu0", None))
    place.propose_and_start()
    assert len(place.actions) == 1


def test_what_is_kept_of_one_that_has_ended_is_forgotten_after_thirty_days() -> None:
    place = Place()
    place.begin()
    place.leave()
    place.wait(30 * DAY_S - 1)
    assert place.stage() is JobStage.ENDED
    place.wait(2)
    assert place.engine.view().jobs == ()


def test_of_those_that_have_ended_the_oldest_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_ENDED_JOBS", 2)
    place = Place()
    for name in ("slurm:1.0", "slurm:2.0", "slurm:3.0"):
        place.begin(job=name)
        place.wait(1)
        place.leave(name)
    assert [job.name for job in place.engine.view().jobs] == ["slurm:2.0", "slurm:3.0"]


def test_of_those_that_have_ended_the_ones_go_first_that_no_cgroup_proves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Any user ends as many of them as he likes."""
    monkeypatch.setattr(limits, "MAX_ENDED_JOBS", 2)
    place = Place()
    for name in ("slurm:1.0", "pid:1", "slurm:2.0/7", "pid:2", "pid:3"):
        place.begin(job=name)
        place.wait(1)
        place.leave(name)
    assert [job.name for job in place.engine.view().jobs] == ["slurm:1.0", "pid:3"]


def test_there_are_no_more_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_JOBS", 1)
    place = Place()
    place.begin()
    place.begin(job=OTHER)
    assert [job.name for job in place.engine.view().jobs] == [JOB]
    assert (
        place.emitted(EventKind.NOTICE)[-1][1] == f"{OTHER} is not supervised: 1 jobs are supervised already"
    )
    place.leave()
    place.begin(job=OTHER)
    assert place.stage(OTHER) is JobStage.RUNNING


def test_no_user_may_keep_all_of_the_others_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_JOBS_OF_USER", 1)
    place = Place()
    place.begin(peer=Peer(pid=1, start_time=1, uid=1000))
    place.begin(job="pid:2", peer=Peer(pid=2, start_time=1, uid=1000))
    place.begin(job=OTHER, peer=Peer(pid=3, start_time=1, uid=1001))
    assert [job.name for job in place.engine.view().jobs] == [JOB, OTHER]
    why = "pid:2 is not supervised: 1 jobs of uid:1000 are supervised already"
    assert place.emitted(EventKind.NOTICE)[-1][1] == why


def test_those_that_no_cgroup_proves_leave_room_to_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_JOBS_UNPROVEN", 2)
    place = Place()
    for job, uid in (("pid:1", 1), (f"{JOB}/2", 2), ("pid:3", 3), (JOB, 4), (OTHER, 5)):
        place.begin(job=job, peer=Peer(pid=uid, start_time=1, uid=uid))
    assert [job.name for job in place.engine.view().jobs] == ["pid:1", f"{JOB}/2", JOB, OTHER]
    why = "pid:3 is not supervised: 2 jobs besides the first of each cgroup are supervised already"
    assert place.emitted(EventKind.NOTICE)[-1][1] == why


def test_pods_of_one_user_do_not_count_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Root of all containers is the same number."""
    monkeypatch.setattr(limits, "MAX_JOBS_OF_USER", 1)
    place = Place()
    for job in ("pod:a", "pod:b", "container:c", "slurm:1.0", "slurm:2.0"):
        place.begin(job=job, peer=Peer(pid=1, start_time=1, uid=0))
    assert [job.name for job in place.engine.view().jobs] == ["pod:a", "pod:b", "container:c", "slurm:1.0"]


def test_that_there_is_no_room_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_JOBS", 0)
    place = Place()
    place.begin()
    assert place.answer is not None
    assert place.answer.refused is Refused.NO_ROOM


def test_a_reboot_ends_every_job() -> None:
    place = Place()
    place.run()
    place.do(Started(boot_id="boot-2", version="1"))
    assert place.stage() is JobStage.ENDED
    assert place.job_events()[-1] == ("job_ended", "the node was rebooted")


def test_a_restart_of_the_daemon_changes_nothing() -> None:
    place = Place()
    place.run()
    place.fault()
    before = place.job()
    place.restart()
    assert place.job() == before


def test_jobs_that_only_claimed_are_shown_without_a_stage() -> None:
    place = Place()
    place.claim("npu1", "slurm:9")
    place.fault("SeparateNPU", "npu1")
    job = place.job("slurm:9")
    assert (job.stage, job.wanted, job.devices) == (None, None, ("die1",))
    assert job.recommended is Recommendation.RESCHEDULE_ISOLATED


def test_a_claim_of_a_job_with_a_supervisor_is_not_shown_twice() -> None:
    place = Place()
    place.claim("npu0", "slurm:7")
    place.begin()
    assert [job.name for job in place.engine.view().jobs] == [JOB]


def test_one_whose_chip_is_to_be_repaired_waits_until_it_is() -> None:
    place = Place()
    place.fault()
    place.begin()
    assert (place.stage(), place.job().wanted) == (JobStage.HOLDING, Wanted.HOLD)
    place.wait(20)
    place.poll_all(BROKEN)
    place.wait(10.001)
    place.help()
    assert (place.stage(), place.job().run) == (JobStage.RUNNING, 1)


def test_one_that_may_run_elsewhere_does_so_rather_than_begin_beside_a_fault_that_stays() -> None:
    place = Place()
    place.fault("SeparateNPU")
    place.begin(MOVES)
    assert (place.job().wanted, place.job().isolated) == (Wanted.LEAVE, True)


def test_one_that_is_only_watched_is_granted_whatever_its_chips_are() -> None:
    place = Place()
    place.fault("SeparateNPU")
    place.begin(WATCHED)
    assert place.job().wanted is Wanted.RUN


def test_one_that_has_ended_is_shown_with_the_last_run_that_it_made() -> None:
    place = Place()
    place.run()
    place.say(RunReportKind.EXITED, status=0)
    assert place.job().run == 2
    place.leave()
    assert place.job().run == 1
    assert [event.job.run for event in place.events if event.kind is EventKind.JOB_ENDED and event.job] == [1]


def test_one_that_has_ended_without_a_run_is_shown_with_none() -> None:
    place = Place()
    place.begin()
    place.leave(status=78)
    assert place.job().run == 0
