"""A rank at half the speed: named within ten steps, with what its chip shows; nothing is stopped."""

from pathlib import Path

import pytest

from nodeagent.client import Event
from tests.stories.jobs import CHIPS, Job, claim, supervised

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.xdist_group("cgroup")]

BEGINS = 6
"""The step from which the rank is slow."""


def slow_events(job: Job) -> list[Event]:
    return [each for each in job.node.subscriber.events if each.kind.value == "job_slow"]


async def test_a_slow_rank_is_named_within_ten_steps_with_what_differs(tmp_path: Path) -> None:
    async with supervised(tmp_path, chips=CHIPS[:4]) as job:
        for chip in job.chips:
            job.node.node.set(chip, "frequency_mhz", 900 if chip == "npu2" else 1500, 7)
        job.checkpoints.mkdir(parents=True)
        job.order(f"2 slow at {BEGINS}")
        job.policy = ("--period", "1")
        job.words = ("--step-time", "0.6", "--every", "1")
        await claim(job, *job.chips)
        await job.start()
        await job.comes(lambda: slow_events(job), "the slow rank")
        step, (event, *_) = job.newest(), slow_events(job)

        assert (event.evidence["who"], event.evidence["chip"]) == ("rank 2", "npu2")
        assert "npu2: clock 900 MHz, peers 1500 MHz" in event.evidence["differs"]
        assert step <= BEGINS + 10
        assert job.process is not None
        assert job.process.returncode is None
        assert [len(job.ranks(run)) for run in (1, 2)] == [4, 0]
