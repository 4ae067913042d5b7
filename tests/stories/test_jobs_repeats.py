"""A fault that comes again and again under a job: twice it is put right here, then the job leaves."""

import json
from pathlib import Path

import pytest

from nodeagent.client import EventKind, Recommendation
from nodeagent.job.model import ExitStatus
from tests.reset_unit.acting import INBAND
from tests.stories.jobs import Job, claim, supervised

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.xdist_group("cgroup")]

PAIR = ("npu0", "npu1")
HOUR_S = 3600
CORRELATION_S = 30
"""So long a rule waits whether other chips of the job show the same; no run begins meanwhile."""

PARITY = 0x80E18005
"""RestartNPU. A rule takes the chip out at the third within 24 h."""

BAD_INPUT = 0x80C98002
"""Of the program that ran: nothing is wrong with the chip."""


async def recommended(job: Job) -> tuple[Recommendation | None, object]:
    """As the event of its end has it, and as ``nodeagent job list --all`` shows it."""
    ended = (await job.node.event(EventKind.JOB_ENDED, "")).job
    assert ended is not None
    status, out = await job.node.daemon.command("job", "list", "--all", "--socket", job.node.daemon.socket)
    assert status == 0
    found = [json.loads(line) for line in out.splitlines()]
    (listed,) = [each for each in found if each["name"] == job.step.name]
    return ended.recommended, listed["recommended"]


async def started(job: Job) -> None:
    job.policy = ("--grace", "2s", "--in-place", "--placements", "3")
    await claim(job, *PAIR)
    await job.start()
    await job.trains(1)


async def test_a_code_that_needs_a_reset_a_third_time_within_a_day_isolates_the_chip_and_the_job_leaves(
    tmp_path: Path,
) -> None:
    async with supervised(tmp_path, "2x910B", chips=PAIR) as job:
        await started(job)
        for run in (2, 3):
            job.node.node.raise_code("npu0", PARITY)
            await job.trains(run)
            await job.node.ended(run - 1)
            job.node.pass_time(HOUR_S)
            await job.node.read_again()
        job.node.node.raise_code("npu0", PARITY)
        await job.node.ended(3)
        await job.node.read_again()
        before = job.ranks(4)
        job.node.pass_time(CORRELATION_S)

        assert await job.status() == ExitStatus.RESCHEDULE_ISOLATED
        assert await recommended(job) == (Recommendation.RESCHEDULE_ISOLATED, "RESCHEDULE_ISOLATED")
        assert (before, job.ranks(4)) == ([], [])
        assert job.node.node.calls(INBAND) == 3
        assert (await job.node.verdicts())["npu0"] == "ISOLATE"


async def test_a_code_of_the_program_itself_sends_the_job_away_the_third_time_and_blames_no_chip(
    tmp_path: Path,
) -> None:
    async with supervised(tmp_path, "2x910B", chips=PAIR) as job:
        await started(job)
        for run in (2, 3):
            job.node.node.raise_code("npu0", BAD_INPUT)
            await job.trains(run)
            job.node.node.clear_code("npu0", BAD_INPUT)
            job.node.pass_time(HOUR_S)
            await job.node.read_again()
        job.node.node.raise_code("npu0", BAD_INPUT)

        assert await job.status() == ExitStatus.RESCHEDULE
        assert await recommended(job) == (Recommendation.RESCHEDULE, "RESCHEDULE")
        assert job.ranks(4) == []
        assert job.node.node.calls(INBAND) == 0
        assert (await job.node.verdicts()) == {"npu0": "ALLOW", "npu1": "ALLOW"}
        assert (await job.node.snapshot()).holds == ()
