"""What a job is called: by its cgroup, or by its process where that names none; never by a former one."""

from dataclasses import replace

from nodeagent.api.jobs import peers
from nodeagent.core.model import JobStage, JobView, Peer, Recommendation, View
from tests.api.samples import device, event

FIRST = Peer(pid=100, start_time=5000, uid=1000)
SECOND = Peer(pid=200, start_time=6000, uid=1000)
STEP = "slurm:7.0"


def view(*jobs: JobView) -> View:
    return View(jobs=jobs)


def job(name: str, peer: Peer, stage: JobStage = JobStage.RUNNING) -> JobView:
    return JobView(
        name=name, kind="training", devices=(), recommended=Recommendation.NONE, stage=stage, peer=peer
    )


def all_live(_peer: Peer) -> bool:
    return True


def none_lives(_peer: Peer) -> bool:
    return False


def test_the_first_has_the_name_of_its_cgroup() -> None:
    assert peers.name_for(FIRST, STEP, view(), all_live, ()) == "slurm:7.0"


def test_a_process_of_no_cgroup_is_named_by_its_pid() -> None:
    assert peers.name_for(FIRST, "", view(), all_live, ()) == "pid:100"


def test_a_second_one_adds_its_pid_as_long_as_the_first_lives() -> None:
    known = view(job(STEP, FIRST))
    assert peers.name_for(SECOND, STEP, known, all_live, ()) == "slurm:7.0/200"
    assert peers.name_for(SECOND, STEP, known, none_lives, ()) == "slurm:7.0"
    assert peers.name_for(SECOND, STEP, view(job(STEP, FIRST, JobStage.ENDED)), all_live, ()) == "slurm:7.0"


def test_one_that_is_about_to_begin_has_its_name_already() -> None:
    assert peers.name_for(SECOND, STEP, view(), none_lives, {STEP}) == "slurm:7.0/200"


def test_who_comes_again_has_the_name_that_it_had() -> None:
    known = view(job(STEP, FIRST), job("slurm:7.0/200", SECOND))
    assert peers.name_for(SECOND, STEP, known, none_lives, ()) == "slurm:7.0/200"


def test_a_name_with_a_pid_is_of_one_process_that_of_a_cgroup_is_not() -> None:
    assert peers.is_of_one_process("pid:100", "")
    assert peers.is_of_one_process("slurm:7.0/200", STEP)
    assert not peers.is_of_one_process(STEP, STEP)


def test_a_claim_for_a_job_is_one_for_its_steps_and_for_no_other_job() -> None:
    claimed = View(devices=(replace(device(event()), claims=(("slurm:7", "training"),)),))
    assert peers.is_claimed(claimed, "slurm:7.0")
    assert peers.is_claimed(claimed, "slurm:7")
    assert not peers.is_claimed(claimed, "slurm:77.0")
    assert not peers.is_claimed(claimed, "")


def test_a_name_that_the_cgroup_does_not_prove_any_more_is_not_gone_on_with() -> None:
    """An earlier version took a supervisor's word for it, or the supervisor was moved."""
    known = view(job("slurm:8.0", FIRST))
    assert peers.name_for(FIRST, "", known, all_live, ()) == "pid:100"
    assert list(peers.former_names(FIRST, "pid:100", known)) == ["slurm:8.0"]
    assert list(peers.former_names(FIRST, "slurm:8.0", known)) == []
    assert list(peers.former_names(SECOND, "pid:200", known)) == []


def test_a_job_with_all_its_steps_has_one_user() -> None:
    others = [("slurm:7.0", FIRST), ("slurm:7.1/300", FIRST), ("pid:400", FIRST), ("slurm:77.0", FIRST)]
    stranger = Peer(pid=200, start_time=6000, uid=1001)
    assert peers.other_user("slurm:7.batch", stranger, others) == FIRST
    assert peers.other_user("slurm:7.0", SECOND, others) is None
    assert peers.other_user("slurm:8.0", stranger, others) is None
    assert peers.other_user("", stranger, others) is None
