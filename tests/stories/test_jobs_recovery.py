"""A job on all eight chips is stopped for a reset, waits, and goes on in place: all real but the chips."""

import os
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from nodeagent.client import EventKind
from nodeagent.system.job_cgroups import job_of
from tests.reset_unit.acting import CODE, INBAND
from tests.stories.jobs import CHIPS, RANKS, Job, Rank, claim, living, slurm_step, supervised

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.xdist_group("cgroup")]

POLICY = ("--grace", "2s")
ANNOTATIONS = 'fault-tolerance/job-retry-num="3"\n'
DONE = "done: verified by a poll of every member"
RECOVERED = ["job_begun", "job_asked", "job_stopped", "job_rerun"]


async def started(job: Job, *, policy: tuple[str, ...] = POLICY) -> list[Rank]:
    """It may be run again in place, its chips are claimed, and all ranks of its first run train."""
    annotations = job.folder / "annotations"
    annotations.write_text(ANNOTATIONS)
    job.policy = (*policy, "--annotations", str(annotations))
    await claim(job, *CHIPS)
    await job.start()
    return await job.trains(1)


def children_of(rank: Rank) -> list[Rank]:
    """The kernel's list may miss some while others end (proc(5)): look again where it does."""
    pids = Path(f"/proc/{rank.pid}/task/{rank.pid}/children").read_text().split()
    return [replace(rank, pid=int(pid)) for pid in pids]


def environment(pid: int) -> dict[str, str]:
    pairs = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def resets(job: Job) -> list[int]:
    return [job.node.node.chip(chip).resets for chip in CHIPS]


def in_order(job: Job, *kinds: str) -> bool:
    """Whether events of these kinds came in this order."""
    course = [each.kind.value for each in job.node.subscriber.events]
    places = [course.index(kind) for kind in kinds]
    return places == sorted(places)


def test_the_cgroup_of_a_step_names_the_job() -> None:
    with slurm_step() as step:
        command = step.within(["cat", "/proc/self/cgroup"])
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert job_of(said, Path("/sys/fs/cgroup")) == step.name

    assert not step.cgroup.parent.exists()


async def test_all_ranks_are_stopped_the_chips_are_reset_once_and_the_command_goes_on_from_its_checkpoint(
    tmp_path: Path,
) -> None:
    async with supervised(tmp_path) as job:
        first = await started(job)
        job.node.break_("npu3")
        await job.node.event(EventKind.ACTION_FINISHED, DONE)
        second = await job.trains(2)
        variables = environment(second[3].pid)

        assert living(first) == []
        assert (job.node.node.calls(INBAND), resets(job)) == (1, [1] * RANKS)
        assert job.course() == RECOVERED
        assert in_order(job, "job_asked", "job_stopped", "action_started", "action_finished", "job_rerun")
        assert {each.code for each in job.events() if each.kind.value == "job_asked"} == {CODE}
        assert second[0].step >= 2
        assert {each.step for each in second} == {second[0].step}
        assert [variables[name] for name in ("MA_PROC_START_CNT", "NODEAGENT_RUN", "NODEAGENT_WHY")] == [
            "2",
            "2",
            "healed",
        ]
        assert variables["NODEAGENT_JOB"] == job.step.name


async def test_what_ignores_the_signal_or_has_left_the_session_is_ended_too_before_anything_is_reset(
    tmp_path: Path,
) -> None:
    async with supervised(tmp_path) as job:
        job.checkpoints.mkdir(parents=True)
        job.order("1 ignore-term", "2 escape")
        first = await started(job)
        await job.comes(lambda: children_of(first[2]), "the process that escapes")
        (escaped,) = children_of(first[2])
        job.order()
        job.node.break_("npu3")
        await job.trains(2)

        assert living(first) == []
        assert living([escaped]) == []
        assert job.course() == RECOVERED
        assert resets(job) == [1] * RANKS


async def test_a_job_without_a_policy_is_left_alone_and_the_reset_waits_for_its_end(tmp_path: Path) -> None:
    async with supervised(tmp_path) as job:
        await claim(job, *CHIPS)
        await job.start()
        first = await job.trains(1)
        job.node.break_("npu3")
        await job.node.announced(1)
        await job.node.event(EventKind.ACTION_PROPOSED, "it waits: ")
        before = job.newest()
        await job.comes(lambda: job.newest() > before, "further checkpoints")

        assert sorted(living(first)) == sorted(each.pid for each in first)
        assert resets(job) == [0] * RANKS
        assert job.course() == ["job_begun"]


async def test_a_reset_that_fails_twice_sends_the_job_away_as_isolated(tmp_path: Path) -> None:
    async with supervised(tmp_path) as job:
        first = await started(job)
        for chip in CHIPS:
            job.node.node.set(chip, "reset_heals", 0)
        job.node.break_("npu3")
        for attempt in (1, 2):
            await job.node.verifying(attempt)
            job.node.pass_time(150)

        assert await job.status() == 86
        assert living(first) == []
        assert job.ranks(2) == []
        assert job.course()[:3] == RECOVERED[:3]
        await job.comes(lambda: job.course()[-1] == "job_ended", "its last event")
        assert (await job.node.verdicts())["npu3"] == "ISOLATE"


async def test_a_job_runs_on_without_a_daemon_and_ends_with_its_own_status(tmp_path: Path) -> None:
    async with supervised(tmp_path) as job:
        await started(job)
        await job.node.kill()
        before = job.newest()
        await job.comes(lambda: job.newest() > before, "further checkpoints")
        job.order("0 exit 41")

        assert await job.status() == 41
        assert job.ranks(2) == []


async def test_the_scheduler_ends_it_and_it_is_not_run_again(tmp_path: Path) -> None:
    async with supervised(tmp_path) as job:
        first = await started(job)
        assert job.process is not None
        job.process.send_signal(signal.SIGTERM)

        assert await job.status() == 128 + signal.SIGTERM
        assert living(first) == []
        await job.comes(lambda: job.course()[-1:] == ["job_ended"], "its end")
        assert job.ranks(2) == []


async def test_a_supervisor_that_was_killed_ends_what_is_left_before_it_runs_the_command_again(
    tmp_path: Path,
) -> None:
    async with supervised(tmp_path) as job:
        first = await started(job)
        assert job.process is not None
        job.process.kill()
        await job.process.wait()
        left = living(first)
        await job.start()
        second = await job.trains(2)

        assert len(left) == RANKS
        assert living(first) == []
        assert os.getsid(second[0].pid) == os.getsid(second[7].pid)


async def test_an_operator_stops_a_job_and_lets_it_run_again(tmp_path: Path) -> None:
    async with supervised(tmp_path) as job:
        first = await started(job)
        stopped = await job.node.order("job", "stop", job.step.name)
        await job.comes(lambda: "job_stopped" in job.course(), "that it has stopped")
        held = living(first), job.ranks(2)
        rerun = await job.node.order("job", "rerun", job.step.name)
        second = await job.trains(2)

        assert (stopped[0], rerun[0]) == (0, 0)
        assert held == ([], [])
        assert environment(second[0].pid)["NODEAGENT_WHY"] == "ordered"
