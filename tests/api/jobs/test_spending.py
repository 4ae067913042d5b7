"""What supervisors leave on the disk: evidence of a confirmed hang, and so many bytes as their user has."""

from pathlib import Path

import pytest

from nodeagent.api.access.limits import RateLimit, a_day
from nodeagent.api.jobs import limits
from nodeagent.core.model import EventKind, JobStage
from nodeagent.job import lines
from nodeagent.job.model import RunEvent
from tests.api.jobs.stage import staged
from tests.api.jobs.supervisor import JOB, connected, slurm_step

EVIDENCE = {f"key {number}": "x" * 1100 for number in range(20)}
FEW, MANY = a_day(1, at_once=20 * 1024), a_day(1, at_once=2**30)


@pytest.mark.parametrize(
    ("word", "kind", "kept"),
    [
        (RunEvent.SUSPECTED, EventKind.JOB_SUSPECTED, []),
        (RunEvent.SUSPENDED, EventKind.JOB_SUSPENDED, [1024] * 16),
        (RunEvent.CLEARED, EventKind.JOB_SUSPECTED, []),
        (RunEvent.EXITED, EventKind.JOB_STOPPED, [256] * 16),
        (RunEvent.UNKILLABLE, EventKind.JOB_STOPPED, []),
    ],
)
async def test_evidence_is_kept_of_a_hang_that_is_confirmed(
    tmp_path: Path, word: RunEvent, kind: EventKind, kept: list[int]
) -> None:
    """And a line of it of a failure."""
    async with staged(tmp_path) as stage, connected(stage.socket) as supervisor:
        await supervisor.begin()
        await supervisor.say(RunEvent.STARTED)
        await supervisor.say(word, evidence=EVIDENCE)
        (event,) = stage.events(kind)
        found = [len(value) for key, value in event.evidence.items() if key.startswith("key")]
        assert found == kept


@pytest.fixture
def few_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "UNPROVEN_BYTES", RateLimit(each=FEW, total=MANY))
    monkeypatch.setattr(limits, "PROVEN_BYTES", RateLimit(each=FEW, total=MANY))
    monkeypatch.setattr(limits, "MAX_WAIT_S", 0.01)


@pytest.mark.usefixtures("few_bytes")
async def test_beyond_its_bytes_what_it_only_tells_is_taken_and_not_kept(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage, connected(stage.socket) as supervisor:
        await supervisor.begin()
        await supervisor.say(RunEvent.STARTED)
        for number in range(20):
            await supervisor.say(RunEvent.SUSPECTED, why=f"no step, {number}")
        told = [event.why for event in stage.events(EventKind.JOB_SUSPECTED)]
        assert 0 < len(told) < 10
        assert told == [f"no step, {number}" for number in range(len(told))]


@pytest.mark.usefixtures("few_bytes")
async def test_beyond_its_bytes_what_moves_the_job_is_taken_without_its_texts(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage, connected(stage.socket) as supervisor:
        await supervisor.begin()
        for run in range(1, 15):
            await supervisor.say(RunEvent.STARTED, run=run)
            await supervisor.say(RunEvent.EXITED, run=run, why="it failed", evidence={"line": "ValueError"})
        ended = stage.events(EventKind.JOB_STOPPED)
        assert stage.jobs[f"pid:{supervisor.pid}"].run == 15
        assert (ended[0].why, ended[0].evidence["line"]) == ("run 1 ended by itself: it failed", "ValueError")
        assert (ended[-1].why, "line" in ended[-1].evidence) == ("run 14 ended by itself", False)
        supervisor.send(lines.Bye(number=99, status=87, why="the same failure twice"))
        await stage.job(f"pid:{supervisor.pid}", stage=JobStage.ENDED, status=87)


@pytest.mark.usefixtures("few_bytes")
async def test_all_supervisors_of_a_user_have_the_same_bytes(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage, connected(stage.socket) as first, connected(stage.socket) as second:
        await first.begin()
        for number in range(10):
            await first.say(RunEvent.SUSPECTED, why=f"first, {number}")
        await second.begin()
        await second.say(RunEvent.SUSPECTED, why="second")
        assert "second" not in [event.why for event in stage.events(EventKind.JOB_SUSPECTED)]


@pytest.mark.root
@pytest.mark.usefixtures("few_bytes")
async def test_those_whose_cgroup_proves_a_job_have_bytes_of_their_own(tmp_path: Path) -> None:
    with slurm_step(JOB) as within:
        async with (
            staged(tmp_path) as stage,
            connected(stage.socket) as other,
            connected(stage.socket, *within) as proven,
        ):
            await other.begin()
            for number in range(10):
                await other.say(RunEvent.SUSPECTED, why=f"other, {number}")
            await proven.begin()
            await proven.say(RunEvent.SUSPECTED, why="proven")
            assert "proven" in [event.why for event in stage.events(EventKind.JOB_SUSPECTED)]
