"""A fault for which nothing is going to be reset now is no reason to stop a job that may be stopped."""

from pathlib import Path

import pytest

from nodeagent.client import EventKind
from tests.reset_unit.acting import CODE
from tests.stories.jobs import Job, claim, living, supervised

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.xdist_group("cgroup")]

PAIR = ("npu0", "npu1")
WHEN_FREE = 0x80AD8009
"""FreeRestartNPU, which waits so in mode graceful."""


async def started(job: Job) -> None:
    """It may be stopped and run again, and not be run elsewhere."""
    job.policy = ("--grace", "2s", "--in-place")
    await claim(job, *PAIR)
    await job.start()
    await job.trains(1)


async def goes_on(job: Job) -> None:
    first = job.ranks(1)
    before = job.newest()
    await job.comes(lambda: job.newest() > before, "further checkpoints")

    assert living(first) == [each.pid for each in first]
    assert job.course() == ["job_begun"]
    assert [job.node.node.chip(chip).resets for chip in PAIR] == [0, 0]


async def test_in_dry_run_nobody_is_stopped(tmp_path: Path) -> None:
    async with supervised(tmp_path, "2x910B", chips=PAIR, mode="dry-run") as job:
        await started(job)
        job.node.break_("npu0")
        await job.node.announced(1)
        await job.node.event(EventKind.ACTION_PROPOSED, "it waits: ")
        await goes_on(job)


async def test_where_resets_are_off_nobody_is_stopped(tmp_path: Path) -> None:
    async with supervised(tmp_path, "2x910B", chips=PAIR, mode="off") as job:
        await started(job)
        job.node.break_("npu0")
        await job.node.subscriber.raised(CODE, "npu0")
        await job.node.read_again()
        job.node.pass_time(600)
        await job.node.read_again()
        await goes_on(job)


async def test_for_a_reset_that_waits_until_the_chip_is_free_nobody_is_stopped(tmp_path: Path) -> None:
    async with supervised(tmp_path, "2x910B", chips=PAIR, agent=('mode = "graceful"',)) as job:
        await started(job)
        job.node.node.raise_code("npu0", WHEN_FREE)
        await job.node.subscriber.raised(f"{WHEN_FREE:08X}", "npu0")
        await job.node.read_again()
        job.node.pass_time(600)
        await job.node.read_again()
        await goes_on(job)
