"""What a job is called, whose a process is, who is refused: by cgroups and processes of this machine."""

import os
import socket
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from nodeagent.api.jobs import peers
from nodeagent.api.refusal import Refusal
from nodeagent.config.sections import JobsConfig
from nodeagent.core.model import EventKind, Holder, JobBegun, JobStage, Peer
from nodeagent.job import lines
from nodeagent.job.model import RunEvent
from nodeagent.system.processes import START, stat_of
from tests.api.jobs.stage import staged
from tests.api.jobs.supervisor import JOB, connected, holder, slurm_scope, slurm_step
from tests.waiting import wait_until


@pytest.mark.root
async def test_a_job_has_the_name_of_its_cgroup_and_the_chips_that_a_hook_claimed_for_it(
    tmp_path: Path,
) -> None:
    with slurm_step(JOB) as within:
        async with staged(tmp_path) as stage:
            await stage.claim(f"slurm:{JOB}", "npu0")
            async with connected(stage.socket, *within) as supervisor:
                supervisor.send(lines.SupervisorHello(pid=1, version="test", job="slurm:1"))
                assert (await supervisor.hear(lines.Welcome)).job == f"slurm:{JOB}.0"
                await supervisor.begin_again()
                assert stage.chips_of(f"slurm:{JOB}.0") == {"npu0"}


@pytest.mark.root
async def test_a_process_of_its_cgroup_is_the_job_s_wherever_it_was_started(tmp_path: Path) -> None:
    with slurm_step(JOB) as within:
        async with staged(tmp_path) as stage, connected(stage.socket, *within) as supervisor:
            await supervisor.begin()
            await stage.hold("npu1", holder(1, job=f"slurm:{JOB}.0"))
            await stage.job(f"slurm:{JOB}.0", devices=(stage.device("npu1").id,))


@pytest.mark.root
async def test_a_second_supervisor_of_a_job_has_a_name_and_chips_of_its_own(tmp_path: Path) -> None:
    with slurm_step(JOB) as within:
        async with staged(tmp_path) as stage, connected(stage.socket, *within) as first:
            await first.begin()
            async with connected(stage.socket, *within) as second:
                await second.begin()
                name = f"slurm:{JOB}.0/{second.pid}"
                await stage.hold("npu0", holder(first.pid, job=f"slurm:{JOB}.0"))
                await stage.hold("npu1", holder(second.pid, job=f"slurm:{JOB}.0"))
                await stage.job(name, devices=(stage.device("npu1").id,))
                await stage.job(f"slurm:{JOB}.0", devices=(stage.device("npu0").id,))


@pytest.mark.root
async def test_a_supervisor_that_is_started_again_goes_on_with_the_job_of_its_cgroup(tmp_path: Path) -> None:
    with slurm_step(JOB) as within:
        async with staged(tmp_path) as stage:
            async with connected(stage.socket, *within) as first:
                await first.begin()
                await first.say(RunEvent.STARTED)
            async with connected(stage.socket, *within) as second:
                await second.begin(run=2)
                job = stage.jobs[f"slurm:{JOB}.0"]
                assert job.peer is not None
                assert (job.run, job.peer.pid) == (2, second.pid)


@pytest.mark.root
async def test_only_jobs_that_a_hook_claimed_are_taken_where_that_is_wanted_and_others_are_audited(
    tmp_path: Path,
) -> None:
    config = JobsConfig(accept="claimed")
    with slurm_step(JOB) as within:
        async with staged(tmp_path, config) as stage:
            await stage.claim(f"slurm:{JOB}", "npu0")
            async with connected(stage.socket, *within) as claimed, connected(stage.socket) as stranger:
                assert (await claimed.begin()).wish.value == "run"
                stranger.send(lines.SupervisorHello(pid=1, version="test", job=f"slurm:{JOB}"))
                why = (await stranger.hear(lines.SupervisorRefused)).why
                assert why.startswith(f"no hook has claimed a chip for process {stranger.pid},")
                assert 'jobs.accept is "claimed"' in why
            ((_, _, who, what, target, result),) = await stage.ledger.read_audit()
            assert (who, what, target) == (f"uid 0 pid {stranger.pid}", "SuperviseJob", "")
            assert result == f"refused: {why}"
            assert set(stage.jobs) == {f"slurm:{JOB}.0"}


async def test_a_job_whose_supervisor_is_dead_ends_once_no_process_of_it_is_left(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.listener.dead_supervisors.wait_s = stage.listener.dead_supervisors.look_each_s = 0.05
        async with connected(stage.socket) as supervisor:
            name = f"pid:{supervisor.pid}"
            await stage.hold("npu0", holder(supervisor.pid))
            await supervisor.begin()
        for _ in range(5):
            assert stage.listener.dead_supervisors.look() == []
        assert stage.jobs[name].stage is JobStage.RUNNING
        await stage.hold("npu0")
        job = await stage.job(name, stage=JobStage.ENDED)
        assert (job.status, job.why) == (None, "its supervisor has died, and no process of it is left")


async def test_a_dead_supervisor_keeps_no_reset_waiting_once_its_chips_are_free(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        dead = stage.listener.dead_supervisors
        dead.wait_for_poll_s = 0.0
        async with connected(stage.socket) as supervisor:
            name = f"pid:{supervisor.pid}"
            await stage.hold("npu0", holder(supervisor.pid))
            await supervisor.begin()
            await stage.job(name, devices=(stage.device("npu0").id,))
        await stage.breaks("npu0")
        assert dead.look() == []
        await stage.hold("npu0")
        assert dead.look() == [name]


async def test_a_dead_supervisor_that_no_reset_waits_for_may_be_started_again(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        dead = stage.listener.dead_supervisors
        dead.wait_for_poll_s = 0.0
        async with connected(stage.socket) as supervisor:
            await stage.hold("npu0", holder(supervisor.pid))
            await supervisor.begin()
        await stage.hold("npu0")
        await stage.breaks("npu1")
        assert dead.look() == []


async def test_the_core_knows_the_processes_below_a_supervisor_as_those_of_its_job(tmp_path: Path) -> None:
    """No hook claims, and no cgroup shows it: only then the job is asked to stop for its chip."""
    async with staged(tmp_path) as stage, connected(stage.socket) as supervisor:
        name = f"pid:{supervisor.pid}"
        await supervisor.begin(in_place=True)
        await stage.hold("npu0", holder(supervisor.pid), holder(os.getpid()))
        await stage.job(name, devices=(stage.device("npu0").id,))
        await stage.breaks("npu0")
        assert stage.jobs[name].stage is JobStage.RUNNING
        await stage.hold("npu0", holder(supervisor.pid))
        await stage.job(name, stage=JobStage.ASKED)


async def test_a_supervisor_that_lives_without_a_connection_is_waited_for(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage, connected(stage.socket) as supervisor:
        stage.listener.dead_supervisors.wait_s = 0.0
        await supervisor.begin()
        supervisor.write(b"no line\n")
        await supervisor.hear(lines.SupervisorRefused)
        assert stage.listener.dead_supervisors.look() == []


async def test_a_process_that_has_the_pid_of_a_dead_supervisor_is_another_job(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage, connected(stage.socket) as supervisor:
        name = f"pid:{supervisor.pid}"
        dead = Peer(pid=supervisor.pid, start_time=1, uid=0)
        await stage.do(JobBegun(job=name, kind="inference", peer=dead, run=3, devices=("npu0", "npu1")))
        await supervisor.begin(run=4)
        job = stage.jobs[name]
        assert (job.kind, job.run, job.devices) == ("training", 4, ())
        assert [event.why for event in stage.events(EventKind.JOB_ENDED)] == ["another process has its pid"]


@pytest.mark.root
def test_the_cgroup_of_a_process_that_is_another_one_by_now_proves_nothing() -> None:
    """Its pid is another's, or it has changed its user since it connected."""
    with slurm_scope(JOB) as within, subprocess.Popen([*within, "sleep", "60"]) as process:
        try:
            wait_until(lambda: f"job_{JOB}" in Path(f"/proc/{process.pid}/cgroup").read_text())
            start_time = holder(process.pid).start_time
            peer = Peer(pid=process.pid, start_time=start_time, uid=0)
            assert peers.job_of_peer(peer) == f"slurm:{JOB}.0"
            assert peers.job_of_peer(replace(peer, start_time=start_time - 1)) == ""
            assert peers.job_of_peer(replace(peer, uid=1000)) == ""
        finally:
            process.kill()


@pytest.mark.root
async def test_a_job_whose_name_is_not_proven_any_more_ends(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage, connected(stage.socket) as supervisor:
        own = holder(supervisor.pid)
        peer = Peer(pid=own.pid, start_time=own.start_time, uid=0)
        await stage.do(JobBegun(job="slurm:8.0", kind="training", peer=peer, run=3))
        await supervisor.begin(run=4)
        assert stage.jobs[f"pid:{supervisor.pid}"].run == 4
        assert stage.jobs["slurm:8.0"].stage is JobStage.ENDED


def test_a_process_that_has_ended_or_began_at_another_time_does_not_live() -> None:
    own = holder(os.getpid())
    assert peers.lives(Peer(pid=own.pid, start_time=own.start_time, uid=0))
    assert not peers.lives(Peer(pid=own.pid, start_time=own.start_time + 1, uid=0))
    zombie = subprocess.Popen(["true"])
    peer = Peer(pid=zombie.pid, start_time=holder(zombie.pid).start_time, uid=0)
    os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
    assert not peers.lives(peer)
    zombie.wait()


@pytest.mark.root
def test_a_user_s_number_may_need_all_of_its_bits() -> None:
    uid = 2**32 - 16
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as there:
        listener.bind(f"\0nodeagent-test-{os.getpid()}")
        listener.listen()
        os.seteuid(uid)
        try:
            there.connect(listener.getsockname())
        finally:
            os.seteuid(0)
        here, _ = listener.accept()
        with here:
            assert peers.peer_of(here).uid == uid


def test_what_proc_hides_is_said_with_what_to_do(tmp_path: Path) -> None:
    here, there = socket.socketpair()
    why = r"cannot see process \d+ in /proc: .* with hidepid and gid"
    with here, there, pytest.raises(Refusal, match=why):
        peers.peer_of(here, tmp_path)


@pytest.mark.root
def test_a_supervisor_in_a_container_is_told_the_pids_that_it_sees(tmp_path: Path) -> None:
    shell = "sleep 60 & echo $! > {file}; wait"
    in_container = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c"]
    pids = tmp_path / "pid"
    with subprocess.Popen([*in_container, shell.format(file=pids)]) as outer:
        try:
            (inner,) = wait_until(lambda: children(outer.pid))
            (rank,) = wait_until(lambda: children(inner))
            peer = Peer(pid=inner, start_time=int(stat_of(Path(f"/proc/{inner}"))[1][START]), uid=0)
            seen_inside = int(wait_until(lambda: pids.exists() and pids.read_text()))

            found = peers.Pids(peer).of(map(holder, (inner, rank, os.getpid())))

            assert tuple(found.values()) == (1, seen_inside, None)
        finally:
            outer.kill()


def test_a_supervisor_beside_the_daemon_sees_its_pids() -> None:
    me = os.getpid()
    peer = Peer(pid=me, start_time=int(stat_of(Path(f"/proc/{me}"))[1][START]), uid=0)

    assert tuple(peers.Pids(peer).of([holder(1)]).values()) == (1,)


def test_each_process_is_looked_up_once_for_as_long_as_it_holds_a_chip(tmp_path: Path) -> None:
    """It is not there any more: whoever looks again finds nothing."""
    for pid, numbers in ((5, "5 1"), (6, "6 2")):
        folder = tmp_path / str(pid)
        folder.mkdir()
        (folder / "status").write_text(f"NSpid:\t{numbers}\n")
        (folder / "stat").write_text(f"{pid} (python) S 5 {'0 ' * 17}7 0\n")
    pids = peers.Pids(Peer(pid=5, start_time=7, uid=0), tmp_path)
    rank = Holder(pid=6, start_time=7, command="python3")
    found = [pids.of([rank])[rank]]
    (tmp_path / "6" / "status").unlink()
    found.append(pids.of([rank])[rank])
    pids.of([])
    found.append(pids.of([rank])[rank])
    assert found == [2, 2, None]


def children(pid: int) -> list[int]:
    """Once it has one."""
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
