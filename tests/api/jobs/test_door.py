"""The door of supervisors, with real processes at the other end: who they are, what is taken, what is told."""

import pytest
from pathlib import Path

from nodeagent.core.model import EventKind, JobStage
from nodeagent.job import lines
from tests.api.jobs.stage import staged
from tests.api.jobs.supervisor import connected


async def test_a_job_begins_and_may_run_at_once(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage, connected(stage.socket) as supervisor:
        welcome = await supervisor.greet()
        want = await supervisor.begin_again()
        assert (welcome.job, welcome.version) == (f"pid:{supervisor.pid}", "0.1.0")
        assert (want.wish.value, want.run) == ("run", 1)
        assert stage.jobs[welcome.job].stage is JobStage.RUNNING
