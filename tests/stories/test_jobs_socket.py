"""A job stops, its chip is healed, and it runs again: the real daemon and its resets, and a supervisor that
only talks. So the daemon can be killed between two messages; test_jobs_kills.py kills it at each stage of a
real supervisor.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from nodeagent.client import EventKind, JobStage
from nodeagent.job.model import RunEvent
from tests.api.jobs.supervisor import Supervisor, connected
from tests.reset_unit.acting import CODE, INBAND, Acting, acting

pytestmark = pytest.mark.slow

JOB_EVENTS = (
    EventKind.JOB_BEGUN,
    EventKind.JOB_ASKED,
    EventKind.JOB_STOPPED,
    EventKind.JOB_RERUN,
    EventKind.JOB_ENDED,
)


class Play:
    """The story, step by step. The daemon is killed after the step ``killed_after``, and starts again."""

    def __init__(self, npus: Acting, supervisor: Supervisor, killed_after: str) -> None:
        self.npus = npus
        self.supervisor = supervisor
        self.run = 1
        self.is_running = False
        self._killed_after = killed_after

    async def step(self, name: str, act: Callable[[], Awaitable[object]]) -> None:
        await act()
        if name == self._killed_after:
            await self.npus.kill()
            await self.npus.start()
            await self.supervisor.greet_again()
            self.supervisor.begin_again_soon(run=self.run, is_running=self.is_running)

    async def begin(self) -> None:
        await self.supervisor.begin()

    async def started(self) -> None:
        self.is_running = True
        await self.supervisor.say(RunEvent.STARTED, run=self.run)

    async def asked(self) -> None:
        self.npus.break_("npu3")
        want = await self.supervisor.wanted("stop")
        assert (want.run, want.chip, want.code) == (1, "npu3", CODE)

    async def emptied(self) -> None:
        """Its processes end. Nobody has said so yet."""
        self.npus.node.let_go("npu3")
        self.is_running = False
        await self.npus.read_again()

    async def stopped(self) -> None:
        await self.supervisor.say(RunEvent.STOPPED, run=self.run)
        self.run = 2
        await self.supervisor.wanted("hold")

    async def healed(self) -> None:
        await self.npus.event(EventKind.ACTION_FINISHED, "done")

    async def rerun(self) -> None:
        want = await self.supervisor.wanted("run")
        assert want.run == 2
        await self.started()


@pytest.mark.parametrize("killed_after", ["never", "emptied"])
async def test_a_job_is_stopped_for_the_reset_of_its_chip_and_runs_again_though_the_daemon_is_killed(
    tmp_path: Path, killed_after: str
) -> None:
    async with acting(tmp_path, "8x910B") as npus:
        await npus.start()
        async with connected(npus.daemon.folder / "jobs.sock") as supervisor:
            npus.node.hold("npu3", supervisor.pid)
            await npus.read_again()
            play = Play(npus, supervisor, killed_after)
            await play.step("begun", play.begin)
            await play.step("started", play.started)
            await play.step("asked", play.asked)
            await play.step("emptied", play.emptied)
            await play.step("stopped", play.stopped)
            await play.step("healed", play.healed)
            await play.rerun()
            await npus.event(EventKind.JOB_RERUN, "")
            assert npus.node.calls(INBAND) == 1
            shown = [event for event in npus.subscriber.events if event.kind in JOB_EVENTS]
            # That it has stopped is told twice where the supervisor says so after it was found to have.
            assert list(
                dict.fromkeys((event.kind.value, event.job and event.job.run) for event in shown)
            ) == [
                ("job_begun", 1),
                ("job_asked", 1),
                ("job_stopped", 1),
                ("job_rerun", 2),
            ]
            (job,) = (await npus.snapshot()).jobs
            assert (job.name, job.stage, job.run) == (f"pid:{supervisor.pid}", JobStage.RUNNING, 2)
            assert job.devices == ("npu3",)


async def test_a_job_whose_supervisor_died_while_the_daemon_was_away_ends(tmp_path: Path) -> None:
    async with acting(tmp_path, "8x910B") as npus:
        npus.daemon.env = {**npus.daemon.env}
        await npus.start()
        async with connected(npus.daemon.folder / "jobs.sock") as supervisor:
            await supervisor.begin()
            await npus.kill()
        await npus.start()
        (job,) = (await npus.snapshot()).jobs
        assert job.stage is JobStage.RUNNING
        # A minute without its processes: of the daemon's own clock, which no test can pass on.
        await npus.event(EventKind.JOB_ENDED, "its supervisor has died, and no process of it is left")
