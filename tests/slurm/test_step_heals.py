"""``job step`` over a real Slurm, with a daemon on one node: its chip is repaired, or its node replaced."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from nodeagent.client import EventKind
from tests.reset_unit.acting import Acting, acting
from tests.slurm.cluster import ASKED_EACH_S, HAS_CGROUPS, Cluster
from tests.slurm.hooks import gres, hooked
from tests.slurm.stepping import NODES, Begun, Job, step, stepping
from tests.waiting import until

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.xdist_group("slurm-step"),
    pytest.mark.skipif(not HAS_CGROUPS, reason="cgroups' first version is not mounted: steps have no groups"),
]

CHIP = "npu0"
SEPARATED = 0x80818C00
"""SeparateNPU."""

DONE = "done: verified by a poll of every member"
CLAIMS = ("--no-kill", "--gres=npu:1")
"""Of sbatch."""

POLICY = ("--in-place", "--placements", "8", "--grace", "2s", "--verdict-wait", "1s")


@asynccontextmanager
async def daemon_of_n2(folder: Path) -> AsyncIterator[tuple[Cluster, Acting]]:
    """Three nodes with prolog and epilog; the second has a daemon with one chip, the others have none."""
    (folder / "n2").mkdir()
    chips = {"of_nodes": "Gres=npu:8,gpu:2", "files": gres(folder)}
    with stepping(folder / "slurm", hooked(folder), **chips) as made:
        async with acting(folder / "n2", "1x910B") as node:
            await node.start()
            await node.read_again()
            (made.folder / "n2.sock").symlink_to(node.daemon.folder / "jobs.sock")
            yield made, node


async def follow(node: Acting, job: Job, run: int, *nodes: str) -> list[Begun]:
    """Wait for that run on these nodes; on n2 it is on the chip from then on."""
    await until(lambda: [each.node for each in job.begun(run)] == sorted(nodes), f"run {run} on {nodes}")
    for each in job.begun(run):
        if each.node == "n2":
            node.node.hold(CHIP, each.pid, is_real=True)
    return job.begun(run)


async def ended(job: Job, *states: str) -> dict[str, str]:
    """As ``Job.ends``, while the daemon's events are read."""
    await until(
        lambda: job.cluster.job(job.number)["JobState"] in states, f"the end: {states}", each_s=ASKED_EACH_S
    )
    return job.cluster.job(job.number)


async def claims(node: Acting) -> list[str]:
    """Whose its chip is."""
    devices = (await node.snapshot()).devices
    return [claim.job for each in devices if each.name == CHIP for claim in each.claims]


async def claimed(node: Acting, by: str) -> None:
    """A daemon that does not answer the prolog in time gets the claim after the job has begun."""

    async def is_claimed() -> bool:
        return await claims(node) == [by]

    await node.daemon.comes(is_claimed, f"the claim of {by}")


async def test_a_chip_of_one_node_is_reset_and_all_nodes_run_again_without_a_requeue(tmp_path: Path) -> None:
    async with daemon_of_n2(tmp_path) as (made, node):
        job = step(made, tmp_path / "job", *POLICY, allocation=CLAIMS)
        await follow(node, job, 1, *NODES)
        await claimed(node, f"slurm:{job.number}")
        node.break_(CHIP)
        second = await follow(node, job, 2, *NODES)
        await node.event(EventKind.ACTION_FINISHED, DONE)
        job.finish(2)
        found = await ended(job, "COMPLETED", "FAILED")

        assert (found["JobState"], found["Restarts"]) == ("COMPLETED", "0")
        assert [(each.node, each.why, each.execution) for each in second] == [
            ("n1", "peer", 2),
            ("n2", "healed", 2),
            ("n3", "peer", 2),
        ]
        assert node.node.chip(CHIP).resets == 1
        seen = [(each.kind.value, each.job.name) for each in node.subscriber.events if each.job]
        first_step, second_step = f"slurm:{job.number}.0", f"slurm:{job.number}.1"
        assert ("job_asked", first_step) in seen
        assert ("job_rerun", second_step) in seen


async def test_a_node_whose_chip_is_taken_out_is_replaced_by_a_spare(tmp_path: Path) -> None:
    async with daemon_of_n2(tmp_path) as (made, node):
        job = step(made, tmp_path / "job", *POLICY, "--nodes", "2", allocation=CLAIMS)
        await follow(node, job, 1, "n1", "n2")
        node.node.raise_code(CHIP, SEPARATED)
        second = await follow(node, job, 2, "n1", "n3")
        job.finish(2)
        found = await ended(job, "COMPLETED", "FAILED")

        assert (found["JobState"], found["Restarts"]) == ("COMPLETED", "0")
        assert {(each.why, each.execution, each.placement) for each in second} == {("peer", 2, 1)}
        outcome = (job.state / "run-1" / "node-n2.json").read_text()
        assert '"status": 86' in outcome
        assert (await node.verdicts())[CHIP] == "ISOLATE"


async def test_a_job_that_is_cancelled_while_its_chip_is_repaired_leaves_nothing(tmp_path: Path) -> None:
    async with daemon_of_n2(tmp_path) as (made, node):
        node.node.set(CHIP, "reset_ms", 60_000)
        job = step(made, tmp_path / "job", *POLICY, allocation=CLAIMS)
        await follow(node, job, 1, *NODES)
        node.break_(CHIP)
        await follow(node, job, 2, "n1", "n3")
        await node.event(EventKind.ACTION_STARTED, "")
        made.run("scancel", str(job.number))
        await ended(job, "CANCELLED")
        await until(lambda: job.living == [], "that nothing is left", each_s=ASKED_EACH_S)

        async def is_free() -> bool:
            return await claims(node) == []

        await node.daemon.comes(is_free, "that nobody claims the chip")
        assert [each.node for each in job.begun(2)] == ["n1", "n3"]
        assert job.begun(3) == []
        assert [made.reason(each) for each in NODES] == ["", "", ""]
