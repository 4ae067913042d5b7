"""Prolog and epilog, run by a real slurmd, with a real daemon on emulated chips."""

import os
import signal
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from tests.slurm.cluster import Cluster, cluster
from tests.slurm.hooks import HOOKS, claimed, claims, gres, hooked
from tests.slurm.node import Bridged, bridged

pytestmark = pytest.mark.root

WAITS: Final = "touch began; while [ ! -e go ]; do sleep 0.05; done"


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[Cluster]:
    made = {"settings": hooked(tmp_path), "of_nodes": "Gres=npu:8,gpu:2", "files": gres(tmp_path)}
    with cluster(tmp_path / "slurm", nodes=("n1", "n2"), **made) as running:
        yield running


@pytest.fixture
async def n1(tmp_path: Path, slurm: Cluster) -> AsyncIterator[Bridged]:
    async with bridged(tmp_path / "n1", slurm, "n1") as node:
        yield node


async def begins(node: Bridged, *options: str) -> int:
    """The number of a job that runs until the file ``go`` is there."""
    job = node.cluster.submit(WAITS, "--nodelist=n1", *options)
    await node.comes((node.cluster.folder / "began").exists, f"job {job}")
    return job


async def ends(node: Bridged, job: int) -> None:
    (node.cluster.folder / "go").touch()
    await node.comes(lambda: node.cluster.job(job)["JobState"] == "COMPLETED", f"the end of {job}")


async def test_a_job_claims_the_chips_that_slurm_gave_it_until_it_has_left(
    slurm: Cluster, n1: Bridged
) -> None:
    await n1.start_daemon()
    first = slurm.submit("sleep 1000", "--nodelist=n1", "--gres=npu:1")
    await n1.comes(lambda: slurm.job(first)["JobState"] == "RUNNING", "the job that has npu0")
    job = await begins(n1, "--gres=npu:3")
    assert slurm.job(job)["GRES"] == "npu:3(IDX:1-3)"
    mine = {f"npu{number}": [f"slurm:{job}"] for number in (1, 2, 3)}
    await claimed(n1, {"npu0": [f"slurm:{first}"], **mine})

    await ends(n1, job)
    await claimed(n1, {"npu0": [f"slurm:{first}"]})


async def test_the_numbers_of_one_gres_are_not_taken_for_those_of_the_other(
    slurm: Cluster, n1: Bridged
) -> None:
    """The node has no gpu1: so all its chips are claimed, and none less."""
    await n1.start_daemon()
    job = await begins(n1, "--gres=gpu:1,npu:1")
    assert slurm.job(job)["GRES"] in ("npu:1(IDX:0),gpu:1(IDX:0)", "gpu:1(IDX:0),npu:1(IDX:0)")
    await claimed(n1, {f"npu{number}": [f"slurm:{job}"] for number in range(8)})


async def test_npus_may_be_called_gpus(slurm: Cluster, n1: Bridged, tmp_path: Path) -> None:
    hooked(tmp_path, NODEAGENT_CHIPS="gpu=npu npu=npu")
    await n1.start_daemon()
    job = await begins(n1, "--gres=gpu:2")
    await claimed(n1, {"npu0": [f"slurm:{job}"], "npu1": [f"slurm:{job}"]})


async def test_a_job_of_processors_claims_nothing_and_asks_no_daemon(slurm: Cluster, n1: Bridged) -> None:
    await n1.start_daemon()
    job = await begins(n1)
    assert await claims(n1) == {}
    assert list((n1.folder.parent / "hooks-n1").iterdir()) == []
    await ends(n1, job)
    assert slurm.state("n1") == ["IDLE"]


async def test_on_two_nodes_each_claims_its_own(slurm: Cluster, n1: Bridged, tmp_path: Path) -> None:
    async with bridged(tmp_path / "n2", slurm, "n2") as n2:
        await n1.start_daemon()
        await n2.start_daemon()
        first = slurm.submit("sleep 1000", "--nodelist=n1", "--gres=npu:2")
        both = slurm.submit(WAITS, "--nodes=2", "--gres=npu:1")
        await n1.comes((slurm.folder / "began").exists, "the job of two nodes")
        firsts = {"npu0": [f"slurm:{first}"], "npu1": [f"slurm:{first}"]}
        await claimed(n1, {**firsts, "npu2": [f"slurm:{both}"]})
        await claimed(n2, {"npu0": [f"slurm:{both}"]})


async def test_without_a_daemon_the_job_begins_and_is_claimed_for_when_there_is_one(
    slurm: Cluster, n1: Bridged
) -> None:
    job = await begins(n1, "--gres=npu:1")
    await n1.start_daemon()
    await claimed(n1, {"npu0": [f"slurm:{job}"]})
    await n1.node.kill()
    await ends(n1, job)
    await n1.comes(lambda: slurm.state("n1") == ["IDLE"], "the node is free, and not drained")
    await n1.node.start()
    await claimed(n1, {})


async def test_a_job_that_left_before_the_daemon_came_is_not_claimed_for(slurm: Cluster, n1: Bridged) -> None:
    job = await begins(n1, "--gres=npu:1")
    assert [each.name for each in (n1.folder.parent / "hooks-n1").iterdir()] == [str(job)]
    await ends(n1, job)
    await n1.comes(lambda: not list((n1.folder.parent / "hooks-n1").iterdir()), "the epilog")
    later = f"{HOOKS / 'prolog'}\0later".encode()
    await n1.comes(
        lambda: not any(later in each for each in slurm.of_processes("cmdline").values()),
        "nobody claims later",
    )


async def test_the_tasks_of_an_array_claim_each_its_own(slurm: Cluster, n1: Bridged) -> None:
    """The number of the last task is that of the array."""
    await n1.start_daemon()
    array = slurm.submit("sleep 1000", "--nodelist=n1", "--gres=npu:1", "--array=0-2")

    def numbers() -> list[str]:
        return slurm.run("squeue", "--noheader", "--states=RUNNING", "--format=%A").split()

    await n1.comes(lambda: len(numbers()) == 3, "all tasks run")
    assert str(array) in numbers()

    async def found() -> bool:
        return len(await claims(n1)) == 3

    await n1.node.daemon.comes(found, "three chips are claimed")
    jobs = [job for each in (await claims(n1)).values() for job in each]
    assert sorted(jobs) == sorted(f"slurm:{number}" for number in numbers())


BLOCK: Final = "\n   JOB_GRES=npu:8\n     Nodes=n1 CPU_IDs=0 Mem=0 GRES=npu:8(IDX:0-7)\n   MinCPUsNode=1 x\n"
"""As ``scontrol show job -d`` prints what a job has."""

TEXTS: Final = {
    "a line of a node": BLOCK.splitlines()[2].join("\n\n"),
    "a whole block": BLOCK,
    "a block, and the end of the record": f"{BLOCK}JobId=1 JobName=x",
    "the same with the number of the job": f"{BLOCK}JobId={{job}} JobName=x",
    "a block without its end": "\n   JOB_GRES=npu:8\n     Nodes=n1 CPU_IDs=0 Mem=0 GRES=npu:8(IDX:0-7)",
    "a block as a shell may expand it": BLOCK.replace("\n", "\\n"),
    "commands": "$(touch pwned) `touch pwned` '; touch pwned; \" *",
}


@pytest.mark.parametrize("options", [("--job-name",), ("--comment", "--account", "--chdir")])
async def test_a_text_of_the_user_claims_no_chip_that_slurm_did_not_give(
    slurm: Cluster, n1: Bridged, options: tuple[str, ...]
) -> None:
    """Slurm prints it as it is. Where it cannot be told from Slurm's own lines, the job claims nothing."""
    await n1.start_daemon()
    for job, (what, text) in enumerate(TEXTS.items(), slurm.first_job):
        written = text.format(job=job)
        folder = slurm.folder / written.replace("/", "")
        folder.mkdir()
        texts = (f"{each}={folder if each == '--chdir' else written}" for each in options)
        assert slurm.submit("sleep 1000", "--nodelist=n1", "--gres=npu:1", *texts) == job
        await n1.comes(partial(_runs, slurm, job), f"job {job}")
        assert set(await claims(n1)) <= {"npu0"}, what
        assert not list(slurm.folder.rglob("pwned"))
        slurm.run("scancel", str(job))
        await n1.comes(lambda: slurm.state("n1") == ["IDLE"], f"the end of {job}")
        await claimed(n1, {})


def _runs(slurm: Cluster, job: int) -> bool:
    return slurm.job(job).get("JobState") == "RUNNING"


async def test_the_first_part_of_a_heterogeneous_job_claims_its_own(slurm: Cluster, n1: Bridged) -> None:
    """Its number is that of the whole job, of which Slurm shows every part."""
    await n1.start_daemon()
    job = slurm.submit("sleep 1000", "--nodelist=n1", "--gres=npu:1", ":", "--nodelist=n2", "--gres=npu:2")
    await claimed(n1, {"npu0": [f"slurm:{job}"]})


async def test_a_text_of_one_task_of_an_array_claims_nothing_for_another(slurm: Cluster, n1: Bridged) -> None:
    """The number of the last task is that of the array, of which Slurm shows every task."""
    await n1.start_daemon()
    forged = BLOCK + f"JobId={slurm.first_job} JobName=x"
    array = slurm.submit("sleep 1000", "--nodelist=n1", "--gres=npu:1", "--array=0-2", f"--comment={forged}")
    assert array == slurm.first_job

    def running() -> list[str]:
        return slurm.run("squeue", "--noheader", "--states=RUNNING", "--format=%A").split()

    await n1.comes(lambda: len(running()) == 3, "all tasks run")
    claimed_by = [job for jobs in (await claims(n1)).values() for job in jobs]
    assert f"slurm:{array}" not in claimed_by
    assert len(claimed_by) == len(set(claimed_by))


async def test_where_slurm_tells_no_numbers_all_chips_are_claimed(tmp_path: Path) -> None:
    counted = {"gres.conf": "Name=npu Count=8\n"}
    with cluster(
        tmp_path / "slurm", nodes=("n1",), settings=hooked(tmp_path), of_nodes="Gres=npu:8", files=counted
    ) as slurm:
        async with bridged(tmp_path / "n1", slurm, "n1") as n1:
            await n1.start_daemon()
            job = await begins(n1, "--gres=npu:1")
            assert slurm.job(job)["GRES"] == "npu(CNT:1)"
            await claimed(n1, {f"npu{number}": [f"slurm:{job}"] for number in range(8)})


async def test_a_job_begins_though_nothing_can_be_written(
    slurm: Cluster, n1: Bridged, tmp_path: Path
) -> None:
    hooked(tmp_path, NODEAGENT_HOOKS="/proc/no/such/folder")
    job = await begins(n1, "--gres=npu:1")
    await ends(n1, job)
    await n1.comes(lambda: slurm.state("n1") == ["IDLE"], "the node is free, and not drained")


def test_the_hooks_can_be_run_where_they_are() -> None:
    assert sorted(hook.name for hook in HOOKS.iterdir() if os.access(hook, os.X_OK)) == ["epilog", "prolog"]


async def test_jobs_without_chips_call_no_command_of_slurm(tmp_path: Path) -> None:
    """The environment tells the chips of gres/gpu, so nothing is asked where no other gres has chips."""
    devices = gres(tmp_path)["gres.conf"].splitlines()[-1]
    with cluster(
        tmp_path / "slurm",
        nodes=("n1",),
        settings=hooked(tmp_path, NODEAGENT_CHIPS="gpu=npu npu=npu") | {"GresTypes": "gpu,npu"},
        of_nodes="Gres=gpu:2",
        files={"gres.conf": f"{devices}\n"},
    ) as slurm:
        async with bridged(tmp_path / "n1", slurm, "n1") as n1:
            await n1.start_daemon()
            slurm.run("sdiag", "--reset")
            job = slurm.submit("sleep 1000", "--gres=gpu:1")
            await claimed(n1, {"npu0": [f"slurm:{job}"]})
            numbers = [slurm.submit("true") for _ in range(10)]

            def ended() -> bool:
                listed = slurm.run("squeue", "--noheader", "--states=all", "--format=%A %T").splitlines()
                return all(f"{each} COMPLETED" in listed for each in numbers)

            await n1.comes(ended, "ten jobs without chips")
            asked = slurm.run("sdiag")
            assert "REQUEST_JOB_INFO_SINGLE" not in asked


async def test_a_job_begins_at_once_though_the_daemon_hangs(slurm: Cluster, n1: Bridged) -> None:
    """The claim is made once the daemon answers."""
    await n1.start_daemon()
    process = n1.node.daemon.process
    assert process is not None
    os.kill(process.pid, signal.SIGSTOP)
    try:
        job = await begins(n1, "--gres=npu:1")
    finally:
        os.kill(process.pid, signal.SIGCONT)
    await claimed(n1, {"npu0": [f"slurm:{job}"]})
