"""A process that no signal ends holds a chip of a job that is to stop: the node takes no new work then."""

import os
from pathlib import Path

import pytest

from nodeagent.client import EventKind
from nodeagent.job.model import Status
from tests.cgroups import freeze, freezer, needs
from tests.reset_unit.acting import INBAND
from tests.stories.jobs import Job, claim, supervised
from tests.stories.test_jobs_recovery import living

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.xdist_group("cgroup")]

PAIR = ("npu0", "npu1")
UNKILLABLE = "process_unkillable"


async def verdict_of_node(job: Job) -> str:
    devices = (await job.node.snapshot()).devices
    return next(each.verdict.value for each in devices if each.name == "node")


@needs("freezer")
async def test_a_frozen_rank_sends_the_job_away_and_the_node_takes_no_new_jobs_until_it_is_released(
    tmp_path: Path,
) -> None:
    """A process of the freezer is in state D, and KILL does not end it. Nothing is reset below it."""
    async with supervised(tmp_path, "2x910B", chips=PAIR) as job:
        job.policy = ("--grace", "0s", "--in-place", "--placements", "3")
        await claim(job, *PAIR)
        await job.start()
        ranks = await job.trains(1)
        with freezer(f"nodeagent-story-{os.getpid()}") as group:
            freeze(group, ranks[1].pid)
            job.node.break_("npu0")

            assert await job.status() == Status.RESCHEDULE_ISOLATED
            raised = await job.node.event(EventKind.RAISED, "", "node")
            found = [each for each in job.events() if each.evidence.get("said") == "unkillable"]
            assert raised.code == UNKILLABLE
            assert f"pid {ranks[1].pid}" in raised.evidence["why"]
            assert [each.kind for each in found] == [EventKind.JOB_STOPPED]
            assert await verdict_of_node(job) == "NO_NEW_JOBS"
            assert living(ranks) == [ranks[1].pid]
            assert job.ranks(2) == []
            assert job.node.node.calls(INBAND) == 0

        await claim(job, "--left")
        await job.node.event(EventKind.ACTION_FINISHED, "done: verified by a poll of every member")
        still = await job.node.verdicts()
        released = await job.node.order("release", "node")
        await job.node.event(EventKind.CLEARED, "", "node")

        assert (job.node.node.calls(INBAND), still) == (1, {"npu0": "ALLOW", "npu1": "ALLOW"})
        assert released[0] == 0
        assert await verdict_of_node(job) == "ALLOW"
