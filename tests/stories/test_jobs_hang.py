"""A job whose ranks stand still while its chips idle: told, restarted in place, and given up at last."""

import re
from functools import partial
from pathlib import Path

import pytest

from nodeagent.job.model import ExitStatus
from tests.stories.jobs import CHIPS, Job, claim, supervised

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.xdist_group("cgroup")]

QUICK = ("--hang-time", "10s", "--period", "0.2", "--grace", "1s")
"""The shortest time there is, and so many samples that it can be judged."""


async def hung(job: Job, *policy: str) -> None:
    """All ranks wait for one that sleeps."""
    job.policy = (*QUICK, *policy)
    await claim(job, *CHIPS)
    await job.start()
    await job.trains(1)
    job.order("3 hang")


async def test_a_hang_is_restarted_in_place_as_often_as_it_may_be_and_then_given_up(tmp_path: Path) -> None:
    """Each run makes steps, so that it is known to be stable, and no checkpoint: that would be progress."""
    async with supervised(tmp_path) as job:
        job.checkpoints.mkdir()
        job.order("3 hang at 20")
        job.policy = (*QUICK, "--hang", "restart", "--hang-row", "1")
        job.words = ("--every", "100000")
        await claim(job, *CHIPS)
        await job.start()
        for run in (1, 2):
            await job.comes(partial(job.ranks, run), f"run {run}")

        assert await job.status() == ExitStatus.GIVEN_UP
        assert [len(job.ranks(run)) for run in (1, 2, 3)] == [8, 8, 0]
        assert [each.kind.value for each in job.events()].count("job_suspended") == 2
        await job.comes(lambda: job.course()[-1] == "job_ended", "its last event")
        assert sum(job.node.node.chip(chip).resets for chip in CHIPS) == 0


async def test_progress_begins_the_row_of_hangs_anew(tmp_path: Path) -> None:
    async with supervised(tmp_path) as job:
        await hung(job, "--hang", "restart", "--hang-row", "1")
        await job.comes(lambda: "job_suspected" in job.course(), "that it hangs")
        job.order()  # before the second run makes its first step, or that one hangs too
        await job.trains(2)
        job.order("5 hang")
        await job.comes(lambda: job.ranks(3), "a third run")

        assert job.process is not None
        assert job.process.returncode is None


async def test_as_shipped_a_hang_is_told_with_its_evidence_and_the_run_is_left_alone(tmp_path: Path) -> None:
    async with supervised(tmp_path) as job:
        await hung(job)
        await job.comes(lambda: "job_suspended" in job.course(), "that it hangs")
        event = next(each for each in job.events() if each.kind.value == "job_suspended")
        job.order()

        assert job.process is not None
        assert job.process.returncode is None
        assert job.course()[:3] == ["job_begun", "job_suspected", "job_suspended"]
        assert re.search(r"/run-1/hang", " ".join(event.evidence.values()))
        assert job.ranks(2) == []
