"""A supervisor that Slurm has started, and that has no name of a job: it is reported while it is there."""

from dataclasses import replace
from pathlib import Path

import pytest

from nodeagent.api.jobs.unnamed import UNNAMED, UnnamedSupervisors
from nodeagent.core.model import (
    Assertion,
    Condition,
    Grade,
    JobStage,
    JobView,
    Level,
    Peer,
    Presence,
    Recommendation,
    View,
)
from nodeagent.store.event_feed import EventFeed
from nodeagent.store.records import Publication, StoreId, Taken

STEP_DAEMON, SUPERVISOR, SHELL = 41, 42, 43
OPEN = Condition(
    id="x",
    device_id="node-id",
    code=UNNAMED,
    name="",
    source="agent",
    presence=Presence(opened_ns=0, last_ns=0),
    grade=Grade(base_level=Level.NOT_HANDLE, level=Level.NOT_HANDLE),
)


def job(name: str, pid: int, stage: JobStage = JobStage.RUNNING) -> JobView:
    return JobView(
        name=name,
        kind="training",
        devices=(),
        recommended=Recommendation.NONE,
        stage=stage,
        peer=Peer(pid=pid, start_time=1, uid=0),
    )


@pytest.fixture
def procfs(tmp_path: Path) -> Path:
    for pid, parent, command, title in (
        (STEP_DAEMON, 1, "slurmstepd", "slurmstepd: [7.0]"),
        (SUPERVISOR, STEP_DAEMON, "python3", ""),
        (SHELL, 1, "python3", ""),
    ):
        folder = tmp_path / str(pid)
        folder.mkdir()
        (folder / "stat").write_text(
            f"{pid} ({command}) S {parent} 1 1 0 -1 0 0 0 0 0 5 0 0 0 20 0 9 0 1 0 0\n"
        )
        (folder / "status").write_text("Uid:\t0\t0\t0\t0\n")
        (folder / "cmdline").write_text(title)
    return tmp_path


def look(procfs: Path, view: View) -> Assertion | None:
    async def ask(*_: object) -> Taken:
        raise AssertionError("it only looks")

    feed = EventFeed()
    published = Publication(
        view=view, store_id=StoreId(uuid="a", epoch=1), seq=1, durable=True, wall_offset_ns=0
    )
    feed.publish(published)
    signal = UnnamedSupervisors(feed, ask, procfs).look()
    return None if signal is None else signal.assertion


def test_it_is_reported_once_and_is_over_when_it_has_ended(procfs: Path) -> None:
    there = View(jobs=(job("pid:42", SUPERVISOR),))
    assert look(procfs, there) is Assertion.OCCUR
    assert look(procfs, replace(there, conditions=(OPEN,))) is None
    ended = View(jobs=(job("pid:42", SUPERVISOR, JobStage.ENDED),), conditions=(OPEN,))
    assert look(procfs, ended) is Assertion.RECOVER


@pytest.mark.parametrize(("name", "pid"), [("slurm:7.0", SUPERVISOR), ("pid:43", SHELL), ("pid:44", 44)])
def test_one_with_a_name_one_that_slurm_did_not_start_and_one_that_is_gone_are_not(
    procfs: Path, name: str, pid: int
) -> None:
    assert look(procfs, View(jobs=(job(name, pid),))) is None
