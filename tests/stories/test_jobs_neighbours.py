"""Two users of one board, whose chips are reset together: who is stopped for a fault of one of them.

The job of the faulty chip stops once nothing else is in the way of the reset. The job on the other chip stops
only if it makes way, and when no other is left.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from nodeagent.client import EventKind
from nodeagent.job.model import ExitStatus
from tests.reset_unit.acting import INBAND
from tests.stories.jobs import Job, beside, claim, living, supervised

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.xdist_group("cgroup")]

POLICY = ("--grace", "2s", "--in-place", "--placements", "3")


@asynccontextmanager
async def neighbours(folder: Path, *more: str) -> AsyncIterator[tuple[Job, Job]]:
    """One on npu0, one on npu1, of which the second has ``more`` in its policy. Both train."""
    async with (
        supervised(folder, "2x910B", chips=("npu0",)) as job,
        beside(job.node, folder / "neighbour", ("npu1",), place=1) as neighbour,
    ):
        job.policy = POLICY
        neighbour.policy = (*POLICY, *more)
        await claim(job, "npu0")
        await claim(neighbour, "npu1")
        await job.start()
        await neighbour.start()
        await job.trains(1)
        await neighbour.trains(1)
        yield job, neighbour


async def waits(job: Job, words: str) -> None:
    """Until its reset is said to wait for that."""
    await job.node.announced(1)
    await job.node.event(EventKind.ACTION_PROPOSED, words)


def resets(job: Job) -> list[int]:
    return [job.node.node.chip(chip).resets for chip in ("npu0", "npu1")]


async def test_neither_job_is_asked_beside_a_process_of_none_and_once_that_has_gone_both_run_again(
    tmp_path: Path,
) -> None:
    async with neighbours(tmp_path, "--yields") as (job, neighbour):
        job.node.node.hold("npu0", os.getpid())
        job.node.break_("npu0")
        await waits(job, f"(pid {os.getpid()}")
        before = job.course(), neighbour.course()
        job.node.node.end_process("npu0", os.getpid())
        await job.trains(2)
        await neighbour.trains(2)

        assert before == (["job_begun"], ["job_begun"])
        assert job.course() == ["job_begun", "job_asked", "job_stopped", "job_rerun"]
        assert neighbour.course() == ["job_begun", "job_asked", "job_stopped", "job_rerun"]
        assert (job.node.node.calls(INBAND), resets(job)) == (1, [1, 1])


async def test_a_neighbour_that_does_not_yield_runs_on_and_the_other_job_leaves_in_the_end(
    tmp_path: Path,
) -> None:
    async with neighbours(tmp_path) as (job, neighbour):
        first = neighbour.ranks(1)
        job.node.break_("npu0")
        await waits(job, f"npu1 is used by the job {neighbour.step.name}")
        assert job.course() == ["job_begun"]
        job.node.pass_time(60)

        assert await job.status() == ExitStatus.RESCHEDULE_ISOLATED
        assert job.ranks(2) == []
        assert living(first) == [each.pid for each in first]
        assert neighbour.course() == ["job_begun"]
        assert resets(job) == [0, 0]


async def test_a_user_without_a_supervisor_is_never_stopped(tmp_path: Path) -> None:
    """Another job has claimed the chip beside, and a process of it is there."""
    async with supervised(tmp_path, "2x910B", chips=("npu0",)) as job:
        job.policy = POLICY
        await claim(job, "npu0")
        await job.node.claim("npu1")
        other = await asyncio.create_subprocess_exec("sleep", "600")
        try:
            job.node.node.hold("npu1", other.pid, is_real=True)
            await job.start()
            await job.trains(1)
            job.node.break_("npu0")
            await waits(job, "npu1 is claimed by the job slurm:9")
            assert job.course() == ["job_begun"]
            job.node.pass_time(60)

            assert await job.status() == ExitStatus.RESCHEDULE_ISOLATED
            assert other.returncode is None
            assert resets(job) == [0, 0]
        finally:
            other.kill()
            await other.wait()
