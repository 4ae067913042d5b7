"""The daemon, the supervisor or both are killed at each stage of a recovery in place: the end is the same.

One reset, never two trainers at once, and no retry or placement used up. A supervisor that is killed while
its command runs costs one more run; its successor is started with the same command on the same state.
"""

import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from nodeagent.client import JobStage
from tests.reset_unit.acting import INBAND
from tests.stories.jobs import Job, claim, supervised

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.xdist_group("cgroup")]

PAIR = ("npu0", "npu1")
"""Reset together: of one board."""

FIRST = ("1 1 first",)
HEALED = (*FIRST, "2 2 healed")
ORPHANED = (*FIRST, "2 2 failed", "3 3 healed")
ORPHANED_AT_LAST = (*HEALED, "3 3 failed")

STARTS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "at the gate": (FIRST, FIRST),
    "running": (HEALED, ORPHANED),
    "asked": (HEALED, HEALED),
    "holding": (HEALED, HEALED),
    "being reset": (HEALED, HEALED),
    "granted": (HEALED, HEALED),
    "run again": (HEALED, ORPHANED_AT_LAST),
}
"""What was started in the end, where the supervisor has lived, and where it was killed."""


class Story:
    """``killed`` holds who is killed. Somebody else is on a chip where a reset is to wait."""

    def __init__(self, job: Job, killed: Sequence[str]) -> None:
        self.job = job
        self.killed = killed

    async def kill(self) -> None:
        job = self.job
        assert job.process is not None
        if "supervisor" in self.killed:
            job.process.kill()
            await job.process.wait()
        if "daemon" in self.killed:
            await job.node.kill()
            await job.node.start()
        if "supervisor" in self.killed:
            await job.start()
        else:
            job.process.send_signal(signal.SIGCONT)

    def somebody_comes(self) -> None:
        self.job.node.node.hold("npu1", os.getpid())

    def somebody_goes(self) -> None:
        self.job.node.node.end_process("npu1", os.getpid())

    async def is_at(self, stage: JobStage, run: int) -> None:
        async def found() -> bool:
            jobs = (await self.job.node.snapshot()).jobs
            return any((each.name, each.stage, each.run) == (self.job.step.name, stage, run) for each in jobs)

        await self.job.node.daemon.comes(found, f"run {run} {stage}")

    # ------------------------------------------------------------------ the stages

    async def at_the_gate(self) -> None:
        self.somebody_comes()
        self.job.node.break_("npu0")
        await self.job.node.daemon.comes(lambda: self.job.node.actions, "a reset that is proposed")
        await self.job.start()
        await self.is_at(JobStage.HOLDING, 1)
        await self.kill()
        await self.is_at(JobStage.HOLDING, 1)
        self.somebody_goes()

    async def running(self) -> None:
        await self.trains()
        await self.kill()
        await self.job.trains(2 if "supervisor" in self.killed else 1)
        self.job.node.break_("npu0")

    async def asked(self) -> None:
        self.job.checkpoints.mkdir(parents=True)
        self.job.order("1 ignore-term")
        await self.trains()
        self.job.order()
        self.job.node.break_("npu0")
        await self.event_has_come("job_asked")
        await self.kill()

    async def holding(self) -> None:
        await self.stops_beside_somebody()
        await self.is_at(JobStage.HOLDING, 2)
        await self.kill()
        await self.is_at(JobStage.HOLDING, 2)
        self.somebody_goes()

    async def stops_beside_somebody(self) -> None:
        """Another process takes a chip once the job is asked, and so delays the reset for a moment."""
        self.job.checkpoints.mkdir(parents=True)
        self.job.order("1 ignore-term")
        await self.trains()
        self.job.order()
        self.job.node.break_("npu0")
        await self.event_has_come("job_asked")
        self.somebody_comes()

    async def being_reset(self) -> None:
        for chip in PAIR:
            self.job.node.node.set(chip, "reset_ms", 2000)
        await self.trains()
        self.job.node.break_("npu0")
        await self.job.node.daemon.comes(lambda: self.job.node.node.calls(INBAND) == 1, "the reset")
        await self.kill()

    async def granted(self) -> None:
        """The supervisor is stopped, so that it cannot begin its run yet."""
        await self.stops_beside_somebody()
        await self.is_at(JobStage.HOLDING, 2)
        assert self.job.process is not None
        self.job.process.send_signal(signal.SIGSTOP)
        self.somebody_goes()
        await self.is_at(JobStage.RUNNING, 2)
        await self.kill()

    async def run_again(self) -> None:
        await self.trains()
        self.job.node.break_("npu0")
        await self.job.trains(2)
        await self.kill()

    async def trains(self) -> None:
        await self.job.start()
        await self.job.trains(1)

    async def event_has_come(self, kind: str) -> None:
        await self.job.comes(lambda: kind in self.job.course(), kind)


@pytest.mark.parametrize("killed", [("daemon",), ("supervisor",), ("daemon", "supervisor")], ids=" and ".join)
@pytest.mark.parametrize("stage", STARTS)
async def test_whoever_is_killed_meanwhile_the_end_is_the_same(
    tmp_path: Path, stage: str, killed: tuple[str, ...]
) -> None:
    async with supervised(tmp_path, "2x910B", chips=PAIR) as job:
        job.trainer = Path(__file__).with_name("lone_trainer.py")
        job.policy = ("--grace", "2s", "--in-place", "--placements", "3")
        await claim(job, *PAIR)
        story = Story(job, killed)
        await getattr(story, stage.replace(" ", "_"))()
        starts = STARTS[stage]["supervisor" in killed]
        await job.trains(len(starts))
        await story.is_at(JobStage.RUNNING, len(starts))
        counts = json.loads((job.folder / "state" / "run_state.json").read_text())

        assert (job.folder / "starts").read_text().splitlines() == [*starts]
        assert not (job.folder / "together").exists()
        assert job.node.node.calls(INBAND) == 1
        assert [job.node.node.chip(chip).resets for chip in PAIR] == [1, 1]
        assert [
            counts[each] for each in ("schedule", "placements", "placements_in_row", "retries", "hangs")
        ] == [
            1,
            0,
            0,
            0,
            0,
        ]
        assert (job.course().count("job_begun"), job.course().count("job_ended")) == (1, 0)
