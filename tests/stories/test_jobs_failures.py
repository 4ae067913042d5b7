"""A command that fails by itself, on chips that are well: whose fault it is, and how often it runs again."""

import json
from pathlib import Path

import pytest

from nodeagent.job.model import ExitStatus
from tests.stories.jobs import Job, claim, supervised

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.xdist_group("cgroup")]

PAIR = ("npu0", "npu1")
VALUE_ERROR = "ValueError: hidden_size must be divisible by num_heads"


async def ready(job: Job, *policy: str) -> None:
    """It may fail three times in a row."""
    retries = ("--in-place", "--in-place-retries", "3", "--verdict-wait", "1s", "--period", "0.2")
    job.policy = (*retries, *policy)
    job.checkpoints.mkdir(parents=True)
    await claim(job, *PAIR)


def counts(job: Job) -> dict[str, object]:
    found: dict[str, object] = json.loads((job.folder / "state" / "run_state.json").read_text())
    return found


async def show(job: Job) -> str:
    """What ``nodeagent job show`` says of it."""
    said = await job.node.daemon.command("job", "show", job.step.name, "--socket", job.node.daemon.socket)
    assert said[0] == 0
    return said[1]


async def test_an_error_of_the_program_at_its_start_ends_the_job_after_one_run_and_is_named(
    tmp_path: Path,
) -> None:
    async with supervised(tmp_path, "2x910B", chips=PAIR) as job:
        await ready(job)
        job.order("1 raise")
        await job.start()

        assert await job.status() == ExitStatus.GIVEN_UP
        assert job.ranks(2) == []
        assert f"leaves with status 87: an error of the job itself: {VALUE_ERROR}" in job.err
        await job.comes(lambda: job.course()[-1:] == ["job_ended"], "its end")
        assert VALUE_ERROR in await show(job)
        assert [each.evidence.get("line") for each in job.events() if each.kind.value == "job_stopped"] == [
            VALUE_ERROR
        ]


async def test_after_a_checkpoint_the_same_error_is_tried_again_and_the_second_time_without_one_ends_the_job(
    tmp_path: Path,
) -> None:
    """The first may have come from what this run has read; the second came without any progress."""
    async with supervised(tmp_path, "2x910B", chips=PAIR) as job:
        await ready(job, "--progress", f"{job.checkpoints}/checkpoint-*.json")
        await job.start()
        await job.trains(1)
        await job.comes(lambda: (counts(job)["best"] or 0) != 0, "progress that is counted")
        job.order("1 raise")

        assert await job.status() == ExitStatus.GIVEN_UP
        assert job.ranks(2) != []
        assert job.ranks(3) == []
        assert job.err.count("nodeagent-job: run 1 has ended (retry here): retry 1 of 3 in 1 s") == 1


async def test_the_same_unknown_failure_without_progress_ends_the_job(tmp_path: Path) -> None:
    """At the second, as its policy has it. Two retries are left: they would end in the same way."""
    async with supervised(tmp_path, "2x910B", chips=PAIR) as job:
        await ready(job, "--error-row", "2")
        failing = job.folder / "failing.py"
        failing.write_text("raise RuntimeError('the 7th shard is odd')\n")
        job.trainer = failing
        await job.start()

        assert await job.status() == ExitStatus.GIVEN_UP
        why = "the same failure twice without progress: RuntimeError: the 7th shard is odd"
        assert f"leaves with status 87: {why}" in job.err
        assert (counts(job)["retries"], counts(job)["placements"]) == (1, 0)


async def test_a_progress_file_that_is_torn_changes_no_count(tmp_path: Path) -> None:
    async with supervised(tmp_path, "2x910B", chips=PAIR) as job:
        progress = job.folder / "latest"
        await ready(job, "--progress", str(progress))
        job.words = ("--every", "100000")
        await job.start()
        await job.comes(lambda: job.ranks(1), "the first run")
        progress.write_text("70")
        await job.comes(lambda: counts(job)["best"] == 70, "progress that is counted")
        job.order("1 exit 9")
        await job.comes(lambda: job.ranks(2), "a second run")
        job.order()
        before = counts(job)
        progress.write_bytes(b"")
        progress.write_bytes(b"\x00\xff step")
        await job.node.read_again()
        job.order("0 exit 8")
        await job.comes(lambda: job.ranks(3), "a third run")

        assert (before["best"], before["retries"]) == (70, 1)
        assert (counts(job)["best"], counts(job)["retries"]) == (70, 2)
