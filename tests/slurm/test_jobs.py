"""Jobs of a real cluster under ``nodeagent job run``, when a chip fails and when a person ends them."""

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.slurm.cluster import HAS_CGROUPS, Cluster, cluster
from tests.slurm.hooks import claimed, claims, gres, hooked
from tests.slurm.node import Bridged, bridged
from tests.slurm.supervised import RUNS, script

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(not HAS_CGROUPS, reason="cgroups' first version is not mounted: steps have no groups"),
]


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[Cluster]:
    settings = {**hooked(tmp_path), "RequeueExit": "75,86", "KillWait": "5"}
    with cluster(
        tmp_path / "slurm", settings=settings, of_nodes="Gres=npu:8,gpu:2", files=gres(tmp_path)
    ) as made:
        yield made


@pytest.fixture
async def n2(tmp_path: Path, slurm: Cluster) -> AsyncIterator[Bridged]:
    sections = ("[jobs]", 'leave_after = "slurm"', f'socket = "{tmp_path}/n2/jobs.sock"')
    async with bridged(tmp_path / "n2", slurm, "n2", sections=sections) as node:
        yield node


async def submitted(node: Bridged, text: str, *options: str) -> int:
    """Its number, once it runs on n2: the other nodes are taken while it is placed."""
    slurm = node.cluster
    others = [slurm.submit("sleep 1000", f"--nodelist={name}", "--exclusive") for name in ("n1", "n3")]
    for each in others:
        await node.comes(lambda each=each: slurm.job(each)["JobState"] == "RUNNING", "a placeholder")  # type: ignore[misc]
    job = slurm.submit(text, "--gres=npu:2", "--requeue", *options)
    await node.comes(lambda: "run on n2:" in slurm.output(job), f"job {job} on n2\n{slurm.output(job)}")
    for each in others:
        slurm.run("scancel", str(each))
    return job


def left_of(slurm: Cluster, job: int) -> list[int]:
    """The processes of the job."""
    mark = f"SLURM_JOB_ID={job}\0".encode()
    return [pid for pid, environ in slurm.of_processes("environ").items() if mark in environ]


async def test_a_job_at_reschedule_leaves_after_the_drain_and_runs_elsewhere(
    slurm: Cluster, n2: Bridged, tmp_path: Path
) -> None:
    order = tmp_path / "order"
    # A slurmctld that is slow to drain.
    n2.scontrol(
        'case "$*" in *DRAIN*) sleep 1;; esac; /usr/bin/scontrol "$@" || exit\n'
        f'case "$*" in *DRAIN*) echo drained >>{order};; esac'
    )
    await n2.start()
    await n2.acknowledged()
    trap = f'trap "echo told to end >>{order}; exit 1" TERM; ' + RUNS
    job = await submitted(n2, script(tmp_path, trap.replace("'", '"')))
    await claimed(n2, {f"npu{number}": [f"slurm:{job}"] for number in (0, 1)})

    n2.fail("npu1")
    again = r"run on n[13]: MA_SCHEDULE_CNT=2 MA_PROC_START_CNT=1"
    await n2.comes(lambda: re.search(again, slurm.output(job)), "the job runs elsewhere")
    assert order.read_text().split("\n")[:2] == ["drained", "told to end"]
    assert "DRAIN" in slurm.state("n2")
    assert slurm.job(job)["Restarts"] == "1"
    (left,) = [each for each in n2.node.subscriber.events if each.kind.value == "job_ended"]
    assert left.evidence["status"] == "86"
    await claimed(n2, {})


async def test_a_job_without_a_supervisor_is_requeued_after_the_drain_if_the_site_says_so(
    slurm: Cluster, n2: Bridged
) -> None:
    n2.keys = ('requeue = "unsupervised"',)
    await n2.start()
    await n2.acknowledged()
    job = await submitted(n2, 'echo "run on $SLURMD_NODENAME: $SLURM_RESTART_COUNT"; sleep 1000')
    await claimed(n2, {f"npu{number}": [f"slurm:{job}"] for number in (0, 1)})

    n2.fail("npu1")
    await n2.comes(lambda: re.search(r"run on n[13]: 1", slurm.output(job)), "the job runs elsewhere")
    said = n2.said
    assert said.index("node n2 is drained") < said.index(f"job {job} is requeued")
    assert said.count("is requeued") == 1


async def test_of_an_array_only_the_task_on_the_faulty_chip_is_requeued(slurm: Cluster, n2: Bridged) -> None:
    """The number of the last task is that of the array."""
    n2.keys = ('requeue = "unsupervised"',)
    await n2.start()
    await n2.acknowledged()
    options = ("--nodelist=n2", "--gres=npu:1", "--requeue")
    array = slurm.submit('echo "run $SLURM_ARRAY_TASK_ID:"; sleep 1000', "--array=0-1", *options)

    async def found() -> bool:
        return len(await claims(n2)) == 2

    await n2.node.daemon.comes(found, "both tasks have claimed their chips")
    (chip,) = [name for name, jobs in (await claims(n2)).items() if jobs == [f"slurm:{array}"]]
    n2.fail(chip)
    await n2.comes(lambda: f"job {array} is requeued" in n2.said, "it is requeued")

    def states() -> dict[str, str]:
        listed = slurm.run("squeue", "--noheader", "--format=%i %T")
        return dict(line.split() for line in listed.splitlines())

    await n2.comes(lambda: states().get(f"{array}_1") == "PENDING", "it waits for another node")
    assert states()[f"{array}_0"] == "RUNNING"


async def test_of_a_heterogeneous_job_all_is_requeued(slurm: Cluster, n2: Bridged) -> None:
    n2.keys = ('requeue = "unsupervised"',)
    await n2.start()
    await n2.acknowledged()
    parts = ("--nodelist=n1", ":", "--nodelist=n2", "--gres=npu:1")
    leader = int(slurm.run("sbatch", "--parsable", "--requeue", "--wrap=sleep 1000", *parts))
    await claimed(n2, {"npu0": [f"slurm:{leader + 1}"]})
    n2.fail("npu0")
    await n2.comes(lambda: f"job {leader + 1} is requeued" in n2.said, "it is requeued")
    await n2.comes(lambda: slurm.job(leader)["Restarts"] == "1", "the whole job is")


async def test_a_job_whose_supervisor_has_ended_puts_its_results_away_undisturbed(
    slurm: Cluster, n2: Bridged, tmp_path: Path
) -> None:
    n2.keys = ('requeue = "unsupervised"',)
    await n2.start()
    job = await submitted(
        n2, script(tmp_path, 'echo "run on $SLURMD_NODENAME:"').replace("exec ", "") + "\nsleep 1000"
    )
    await n2.comes(lambda: "job_ended" in [each.kind.value for each in n2.node.subscriber.events], "it ended")
    await claimed(n2, {f"npu{number}": [f"slurm:{job}"] for number in (0, 1)})
    n2.fail("npu1")
    await n2.is_drained()
    await n2.acknowledged()
    assert slurm.job(job)["JobState"] == "RUNNING"
    assert slurm.job(job)["Restarts"] == "0"


async def test_a_job_that_may_not_be_requeued_is_left_and_holds_up_nothing(
    slurm: Cluster, n2: Bridged
) -> None:
    n2.keys = ('requeue = "unsupervised"',)
    await n2.start()
    job = await submitted(n2, 'echo "run on $SLURMD_NODENAME:"; sleep 1000', "--no-requeue")
    await claimed(n2, {f"npu{number}": [f"slurm:{job}"] for number in (0, 1)})

    n2.fail("npu1")
    await n2.comes(lambda: f"job {job} cannot be requeued" in n2.said, "it is given up")
    await n2.acknowledged()
    assert slurm.job(job)["JobState"] == "RUNNING"


async def test_a_job_without_a_supervisor_is_left_alone_as_shipped(slurm: Cluster, n2: Bridged) -> None:
    await n2.start()
    job = await submitted(n2, 'echo "run on $SLURMD_NODENAME:"; sleep 1000')
    await claimed(n2, {f"npu{number}": [f"slurm:{job}"] for number in (0, 1)})
    n2.fail("npu1")
    await n2.is_drained()
    await n2.acknowledged()
    assert slurm.job(job)["JobState"] == "RUNNING"


async def is_cancelled(node: Bridged, job: int) -> None:
    """Nothing is left of it, on the node or in the daemon; it does not run again, and the node is free."""
    slurm = node.cluster
    slurm.run("scancel", str(job))
    await node.comes(lambda: slurm.job(job)["JobState"] == "CANCELLED", "it is cancelled")
    await node.comes(lambda: not left_of(slurm, job), "its processes are gone")
    await claimed(node, {})
    await node.comes(lambda: slurm.state("n2") == ["IDLE"], "n2 is free, and not drained")
    assert slurm.job(job)["Restarts"] == "0"


@pytest.mark.parametrize("stage", ["running", "stopping", "held", "between two tries"])
async def test_a_job_that_a_person_cancels_is_gone_at_any_stage(
    slurm: Cluster, n2: Bridged, tmp_path: Path, stage: str
) -> None:
    command, grace = RUNS, "1s"
    if stage == "stopping":
        command, grace = 'trap "" TERM; ' + RUNS.replace("& wait", "") + "; sleep 1000", "4s"
    if stage == "between two tries":
        command = RUNS.replace("sleep 1000 & wait", "sleep 0.1; false")
    text = script(tmp_path, command.replace("'", '"'), grace)
    if stage == "between two tries":
        text = text.replace("--in-place ", "--in-place --in-place-retries 20 --verdict-wait 0s ")
    await n2.start()
    job = await submitted(n2, text)
    await claimed(n2, {f"npu{number}": [f"slurm:{job}"] for number in (0, 1)})
    if stage in ("stopping", "held"):
        await ordered_to_stop(n2, job, "asked" if stage == "stopping" else "holding")
    if stage == "between two tries":
        await n2.comes(lambda: slurm.output(job).count("run on n2") >= 3, "a third try, and a pause")
    await is_cancelled(n2, job)
    course = [each.kind.value for each in n2.node.subscriber.events if each.job]
    assert course[-1] == "job_ended"


async def ordered_to_stop(node: Bridged, job: int, stage: str) -> None:
    """Wait until it is at this stage after an operator's order."""
    status, out = await node.node.order("job", "stop", f"slurm:{job}.batch")
    assert status == 0, out

    async def found() -> bool:
        jobs = await node.node.daemon.asked(lambda client: client.jobs())
        return [str(each.stage) for each in jobs if each.stage is not None] == [stage]

    await node.node.daemon.comes(found, f"the job is {stage}")
