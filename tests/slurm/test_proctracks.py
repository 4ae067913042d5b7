"""A job has its name also where Slurm gives its steps no cgroup, and in the second version of cgroups."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest

from nodeagent.client import Job
from nodeagent.system.slurm_jobs import RECORDS
from tests.cgroups import MOUNTED as CGROUPS
from tests.slurm.cluster import MOST_OF_ONE_CLUSTER, Cluster, cluster
from tests.slurm.hooks import claimed, gres, hooked
from tests.slurm.node import Bridged, bridged
from tests.slurm.supervised import HEALS, RUNS, script

pytestmark = pytest.mark.root

NO_CGROUPS: Final = "proctrack/linuxproc"
BY_CGROUPS: Final = pytest.param(
    "proctrack/cgroup",
    marks=pytest.mark.skipif(
        not (CGROUPS / "cgroup.controllers").exists(), reason="cgroups' second version is not mounted alone"
    ),
)


@pytest.fixture(params=[NO_CGROUPS, BY_CGROUPS])
def slurm(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    mounted = f"CgroupPlugin=cgroup/v2\nCgroupMountpoint={CGROUPS}\nIgnoreSystemd=yes\n"
    settings = {
        **hooked(tmp_path, NODEAGENT_RECORDS=""),
        "ProctrackType": request.param,
        "RequeueExit": "75,86",
        "KillWait": "5",
    }
    with cluster(
        tmp_path / "slurm",
        nodes=("n1",),
        settings=settings,
        of_nodes="Gres=npu:8,gpu:2",
        files={**gres(tmp_path), **({} if request.param == NO_CGROUPS else {"cgroup.conf": mounted})},
    ) as made:
        try:
            yield made
        finally:
            for record in Path("/", RECORDS).glob("*"):
                if record.name.isdigit() and 0 <= int(record.name) - made.first_job < MOST_OF_ONE_CLUSTER:
                    record.unlink(missing_ok=True)  # its epilog may not have run


@pytest.fixture
async def n1(tmp_path: Path, slurm: Cluster) -> AsyncIterator[Bridged]:
    sections = ("[jobs]", f'socket = "{tmp_path}/n1/jobs.sock"')
    async with bridged(tmp_path / "n1", slurm, "n1", sections=sections) as node:
        yield node


async def supervised(node: Bridged) -> Job:
    """The job that has a supervisor, once there is one."""
    found = list[Job]()

    async def is_there() -> bool:
        jobs = await node.node.daemon.asked(lambda client: client.jobs())
        found[:] = [each for each in jobs if each.stage is not None]
        return bool(found)

    await node.node.daemon.comes(is_there, "a supervised job")
    return found[0]


async def test_a_supervised_job_has_the_name_under_which_the_prolog_claims(
    slurm: Cluster, n1: Bridged, tmp_path: Path
) -> None:
    await n1.start()
    job = slurm.submit(script(tmp_path), "--gres=npu:2")
    await n1.comes(lambda: "run on n1:" in slurm.output(job), f"job {job}\n{slurm.output(job)}")
    await claimed(n1, {"npu0": [f"slurm:{job}"], "npu1": [f"slurm:{job}"]})
    assert (await supervised(n1)).name == f"slurm:{job}.batch"


async def test_a_job_runs_again_in_place_after_the_reset_of_its_chip(
    slurm: Cluster, n1: Bridged, tmp_path: Path
) -> None:
    n1.node.mode = "on"
    await n1.start()
    job = slurm.submit(script(tmp_path), "--gres=npu:2")
    await n1.comes(lambda: "run on n1:" in slurm.output(job), f"job {job}\n{slurm.output(job)}")
    n1.node.node.raise_code("npu0", HEALS)
    second = "MA_SCHEDULE_CNT=1 MA_PROC_START_CNT=2"
    await n1.comes(lambda: second in slurm.output(job), "the second run on this node")


async def test_a_supervised_job_is_not_requeued_as_unsupervised(
    slurm: Cluster, n1: Bridged, tmp_path: Path
) -> None:
    n1.keys = ('requeue = "unsupervised"',)
    await n1.start()
    job = slurm.submit(script(tmp_path, RUNS).replace("--in-place ", ""), "--gres=npu:2", "--requeue")
    await n1.comes(lambda: "run on n1:" in slurm.output(job), f"job {job}\n{slurm.output(job)}")
    await claimed(n1, {"npu0": [f"slurm:{job}"], "npu1": [f"slurm:{job}"]})
    n1.fail("npu1")
    await n1.is_drained()
    await n1.acknowledged()
    assert f"job {job} is requeued" not in n1.said
