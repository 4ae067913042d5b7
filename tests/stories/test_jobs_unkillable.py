"""A process that no signal ends holds a chip of a job that is to stop: the node takes no new work then."""

import asyncio
import os
from pathlib import Path

import pytest

from nodeagent.client import EventKind
from nodeagent.job.model import ExitStatus, RunEvent
from tests.api.jobs.supervisor import connected
from tests.cgroups import freeze, freezer, needs
from tests.reset_unit.acting import INBAND, Acting, acting
from tests.stories.jobs import claim, living, supervised

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.xdist_group("cgroup")]

PAIR = ("npu0", "npu1")
UNKILLABLE = "process_unkillable"


async def verdicts(npus: Acting) -> dict[str, str]:
    return {each.name: each.verdict.value for each in (await npus.snapshot()).devices}


@needs("freezer")
async def test_a_frozen_rank_sends_the_job_away_and_its_chip_takes_no_new_jobs_until_it_is_gone(
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

            assert await job.status() == ExitStatus.RESCHEDULE_ISOLATED
            raised = await job.node.event(EventKind.RAISED, "", "npu1")
            found = [each for each in job.events() if each.evidence.get("said") == "unkillable"]
            assert (raised.code, raised.evidence["pid"]) == (UNKILLABLE, str(ranks[1].pid))
            assert [each.kind for each in found] == [EventKind.JOB_STOPPED]
            assert raised.seq < found[0].seq
            now = await verdicts(job.node)
            # It is to be reset with the faulty one, too, which waits for it.
            assert (now["node"], now["npu1"]) == ("ALLOW", "ISOLATE")
            assert living(ranks) == [ranks[1].pid]
            assert job.ranks(2) == []
            assert job.node.node.calls(INBAND) == 0

        await job.node.event(EventKind.CLEARED, "recovered", "npu1")
        await claim(job, "--left")
        await job.node.event(EventKind.ACTION_FINISHED, "done: verified by a poll of every member")
        assert job.node.node.calls(INBAND) == 1
        assert await verdicts(job.node) == {"node": "ALLOW", "npu0": "ALLOW", "npu1": "ALLOW"}


@needs("freezer")
async def test_a_process_of_nobody_s_job_is_seen_too_and_again_by_a_later_life_of_the_daemon(
    tmp_path: Path,
) -> None:
    async with acting(tmp_path, "2x910B") as npus:
        await npus.start()
        process = await asyncio.create_subprocess_exec("sleep", "600")
        with freezer(f"nodeagent-story-{os.getpid()}") as group:
            npus.node.hold("npu1", process.pid, is_real=True)
            await npus.read_again()
            freeze(group, process.pid)
            process.kill()
            raised = await npus.event(EventKind.RAISED, "", "npu1")
            assert (raised.code, raised.evidence["command"]) == (UNKILLABLE, "sleep")
            await npus.kill()
            await npus.start()
            assert (await verdicts(npus))["npu1"] == "NO_NEW_JOBS"
        await npus.event(EventKind.CLEARED, "recovered", "npu1")
        assert await verdicts(npus) == {"node": "ALLOW", "npu0": "ALLOW", "npu1": "ALLOW"}


async def test_a_job_that_says_so_though_its_process_could_be_ended_takes_nothing_out_of_service(
    tmp_path: Path,
) -> None:
    async with acting(tmp_path, "2x910B") as npus:
        await npus.start()
        async with connected(npus.daemon.folder / "jobs.sock") as supervisor:
            npus.node.hold("npu1", supervisor.pid, is_real=True)
            await npus.read_again()
            await supervisor.begin()
            await supervisor.say(RunEvent.STARTED)
            await supervisor.say(RunEvent.UNKILLABLE, why="because I say so")
            told = await npus.event(EventKind.JOB_STOPPED, "because I say so")
            assert told.evidence["said"] == "unkillable"
            assert (await supervisor.wanted("leave")).isolated is False
            assert await verdicts(npus) == {"node": "ALLOW", "npu0": "ALLOW", "npu1": "ALLOW"}
            assert (await npus.snapshot()).conditions == ()
