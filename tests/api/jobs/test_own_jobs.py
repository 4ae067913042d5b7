"""A user asks for the jobs of this user, at the socket that every supervisor uses."""

import json
import os
from pathlib import Path

from nodeagent.api.jobs import own_jobs
from nodeagent.core.model import ResetMode
from nodeagent.core.state.names import answers_for
from nodeagent.job import lines
from nodeagent.job.model import RunEvent
from tests.api.jobs.stage import staged
from tests.api.jobs.supervisor import Supervisor, as_user, connected, stop
from tests.core.resets.ring import ring_catalog

ANOTHER = 4711


async def asked(supervisor: Supervisor, job: str = "") -> tuple[list[str], list[tuple[str, str]]]:
    """The names of the jobs, and kind and reason of the events."""
    supervisor.send(lines.AskOwnJobs(job=job))
    jobs, events = [], []
    while not isinstance(line := await supervisor.next(), lines.OwnJobsEnd):
        assert isinstance(line, lines.OwnJob | lines.OwnJobEvent), line
        values = json.loads(line.message)
        if isinstance(line, lines.OwnJob):
            jobs.append(values["name"])
        else:
            events.append((values["kind"], values["job"]["why"]))
    return jobs, events


async def test_a_user_sees_the_jobs_of_the_user_and_no_other(tmp_path: Path) -> None:
    async with (
        staged(tmp_path) as stage,
        connected(stage.socket) as ours,
        connected(stage.socket) as same_user,
        connected(Path(stage.socket.name), *as_user(ANOTHER, tmp_path)) as stranger,
    ):
        await ours.begin()
        assert await asked(same_user) == ([f"pid:{ours.pid}"], [])
        assert await asked(stranger, f"pid:{ours.pid}") == ([], [])


async def test_a_caller_in_a_container_sees_no_job_of_another_with_the_same_user(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage, connected(stage.socket) as ours:
        await ours.begin()
        answer = own_jobs.answer(lines.AskOwnJobs(), stage.feed, answers_for("container:4711", os.getuid()))
        assert list(answer) == [lines.OwnJobsEnd()]


async def test_the_events_of_the_job_that_is_named_are_sent_since_its_start(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage, connected(stage.socket) as ours, connected(stage.socket) as asker:
        await ours.begin()
        await ours.say(RunEvent.STARTED)
        await stage.do(stop(f"pid:{ours.pid}"))
        _, events = await asked(asker, f"pid:{ours.pid}")
        assert [kind for kind, _ in events] == ["EVENT_KIND_JOB_BEGUN", "EVENT_KIND_JOB_ASKED"]


async def test_a_supervisor_learns_at_its_start_how_far_resets_go(tmp_path: Path) -> None:
    catalog = ring_catalog(ResetMode.DRY_RUN)
    async with staged(tmp_path, catalog=catalog) as stage, connected(stage.socket) as supervisor:
        assert dict((await supervisor.greet()).resets) == {"ascend": "dry-run"}
