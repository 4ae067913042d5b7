"""Processes on a chip that cannot be ended: what the daemon sees by itself, and what a supervisor says."""

import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from nodeagent.api.jobs import unkillable
from nodeagent.api.jobs.unkillable import LASTS_S, OUTLIVES_S, UnkillableHolders
from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import (
    Assertion,
    Backing,
    Condition,
    EventKind,
    Grade,
    Holder,
    JobStage,
    JobView,
    Kind,
    Level,
    Origin,
    Peer,
    Presence,
    ProcessesListed,
    Recommendation,
    Signal,
    View,
)
from nodeagent.job import lines
from nodeagent.job.model import RunEvent
from nodeagent.store.event_feed import EventFeed
from nodeagent.store.records import Publication, StoreId, Taken
from tests.api.jobs.stage import DoorStage, staged
from tests.api.jobs.supervisor import connected, holder
from tests.api.samples import device, event
from tests.cgroups import freeze, freezer, needs
from tests.core.jobs.place import job_catalog
from tests.system.proc_tree import BEGAN, KILL, PID, thread

CODE = "process_unkillable"
STUCK = Holder(pid=PID, start_time=BEGAN, command="python3", job="slurm:7.0")
BESIDE = Holder(pid=PID + 100, start_time=BEGAN, command="python3", job="slurm:7.0")
SUPERVISOR = Peer(pid=7, start_time=1, uid=0)
NODE = replace(device(event()), id="node-id", name="node", kind=Kind.NODE, holders=None)
CHIPS = tuple(
    replace(device(event()), id=f"{name}-id", name=name, kind=Kind.CHIP, holders=())
    for name in ("npu0", "npu1")
)


class Watch:
    """The watcher over a tree such as /proc, a view and a clock of the test's own."""

    def __init__(self, procfs: Path) -> None:
        self.procfs = procfs
        self.now_s = 0.0
        self.feed = EventFeed()
        self.watcher = UnkillableHolders(self.feed, self._ask, lambda: self.now_s, procfs)
        self.view = View(devices=(NODE, *CHIPS))

    async def _ask(self, *_: object) -> Taken:
        raise AssertionError("it only looks")

    def show(self, **changes: object) -> None:
        self.view = replace(self.view, **changes)  # type: ignore[arg-type]

    def hold(self, chip: str, *holders: Holder) -> None:
        self.show(
            devices=tuple(
                replace(each, holders=holders) if each.name == chip else each for each in self.view.devices
            )
        )

    def look(self, passed_s: float = 0.0) -> list[tuple[str, str]]:
        """(device, what) after so much time; what was said is in the view from then on."""
        self.now_s += passed_s
        self.show(now_ns=self.view.now_ns + int(passed_s * SECOND_NS))
        publication = Publication(
            view=self.view, store_id=StoreId(uuid="a", epoch=1), seq=1, durable=True, wall_offset_ns=0
        )
        self.feed.publish(publication)
        said = self.watcher.look()
        for each in said:
            chip = next(one for one in self.view.devices if one.name == each.device)
            others = tuple(one for one in self.view.conditions if one.device_id != chip.id)
            opened = (fault(chip.id, **each.evidence),) if each.assertion is Assertion.OCCUR else ()
            self.show(conditions=(*others, *opened))
        return [(each.device, each.assertion.value) for each in said]


def fault(device_id: str, **evidence: str) -> Condition:
    return Condition(
        id=f"{device_id}/{CODE}#1",
        device_id=device_id,
        code=CODE,
        name="Process cannot be ended",
        source="agent",
        presence=Presence(opened_ns=0, last_ns=0),
        grade=Grade(base_level=Level.PRE_SEPARATE_NPU, level=Level.PRE_SEPARATE_NPU),
        backing=Backing(evidence=evidence),
    )


def job(
    name: str, stage: JobStage, *, peer: int = 7, status: int | None = None, since_ns: int = 0
) -> JobView:
    return JobView(
        name=name,
        kind="training",
        devices=(),
        recommended=Recommendation.NONE,
        stage=stage,
        peer=SUPERVISOR,
        status=status,
    )


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    """The holder runs below the supervisor, the one beside it does not."""
    thread(tmp_path, PID)
    for pid, parent, began in ((BESIDE.pid, 1, BEGAN), (SUPERVISOR.pid, 1, SUPERVISOR.start_time), (1, 0, 0)):
        (tmp_path / str(pid)).mkdir()
        fields = f"S {parent} 1 1 0 -1 0 0 0 0 0 5 0 0 0 20 0 9 0 {began} 0 0"
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a) {fields}\n")
        (tmp_path / str(pid) / "status").write_text("Name:\ta\n")
    return Watch(tmp_path)


def test_a_holder_that_was_killed_counts_once_it_is_there_for_long(watch: Watch) -> None:
    watch.hold("npu1", STUCK)
    assert watch.look(100) == []
    thread(watch.procfs, PID, "D", SigPnd=KILL)
    assert watch.look() == []
    assert watch.look(LASTS_S - 1) == []
    assert watch.look(1) == [("npu1", "occur")]
    (opened,) = watch.view.conditions
    assert opened.backing.evidence == {
        "command": "python3",
        "pid": "42",
        "start_time": "4711",
        "job": "slurm:7.0",
        "why": "it was killed, or ends by itself, and is there 30 s later",
    }
    assert watch.look(1000) == []


def test_it_is_over_when_the_process_is_gone_or_holds_the_chip_no_more(watch: Watch) -> None:
    thread(watch.procfs, PID, "D", SigPnd=KILL)
    watch.hold("npu0", STUCK)
    watch.hold("npu1", STUCK)
    watch.look()
    assert watch.look(LASTS_S) == [("npu0", "occur"), ("npu1", "occur")]
    watch.hold("npu0")
    assert watch.look(5) == [("npu0", "recover")]
    thread(watch.procfs, PID, "Z")
    assert watch.look(5) == [("npu1", "recover")]


def test_one_that_ends_in_time_is_told_of_by_nothing(watch: Watch) -> None:
    thread(watch.procfs, PID, "D", SigPnd=KILL)
    watch.hold("npu0", STUCK)
    assert watch.look() == []
    thread(watch.procfs, PID, "Z")
    assert watch.look(LASTS_S) == []


def test_a_process_that_is_blocked_and_that_nobody_killed_does_not_count(watch: Watch) -> None:
    thread(watch.procfs, PID, "D")
    watch.hold("npu0", STUCK)
    assert [watch.look(600), watch.look(600)] == [[], []]


def test_a_later_life_of_the_daemon_goes_on_with_it_and_clears_it(watch: Watch) -> None:
    thread(watch.procfs, PID, "D", SigPnd=KILL)
    watch.hold("npu0", STUCK)
    watch.show(conditions=(fault("npu0-id", pid="42", start_time="4711"),))
    assert [watch.look(), watch.look(LASTS_S)] == [[], []]
    thread(watch.procfs, PID, "D")
    assert watch.look(5) == []
    thread(watch.procfs, PID, "Z")
    assert watch.look(5) == [("npu0", "recover")]


def test_what_an_earlier_version_told_of_the_node_ends_once_nothing_is_stuck_there(watch: Watch) -> None:
    thread(watch.procfs, PID, "D", SigPnd=KILL)
    watch.hold("npu0", STUCK)
    watch.show(conditions=(fault("node-id", job="slurm:7.0", why="npu0 is used by python3 (pid 42)"),))
    assert watch.look() == []
    assert watch.look(LASTS_S) == [("npu0", "occur"), ("node", "recover")]


def test_what_an_earlier_version_told_of_the_node_ends_at_once_where_nothing_is_stuck(watch: Watch) -> None:
    watch.hold("npu0", STUCK)
    watch.show(conditions=(fault("node-id", job="slurm:7.0"),))
    assert watch.look() == [("node", "recover")]


def test_what_was_injected_ends_by_hand(watch: Watch) -> None:
    watch.show(conditions=(replace(fault("npu0-id"), origin=Origin(injected=True)),))
    assert watch.look() == []


@pytest.mark.parametrize(("status", "counts"), [(86, True), (1, True), (0, False), (None, False)])
def test_a_holder_that_outlives_a_supervisor_that_left_counts_after_a_minute(
    watch: Watch, status: int | None, counts: bool
) -> None:
    """One that left with 0 had nothing to end; of one that died others may end the job, or go on with it."""
    watch.hold("npu0", STUCK, BESIDE)
    watch.hold("npu1", BESIDE)
    watch.show(jobs=(job("slurm:7.0", JobStage.RUNNING),))
    assert watch.look() == []
    watch.show(jobs=(job("slurm:7.0", JobStage.ENDED, status=status),))
    assert watch.look(OUTLIVES_S - 1) == []
    assert watch.look(1) == [("npu0", "occur")] * counts
    watch.hold("npu0", BESIDE)
    assert watch.look(5) == [("npu0", "recover")] * counts


def test_what_came_after_the_supervisor_left_is_another_s(watch: Watch) -> None:
    """The batch script goes on with its next command."""
    watch.show(jobs=(job("slurm:7.0", JobStage.RUNNING),))
    watch.look()
    watch.show(jobs=(job("slurm:7.0", JobStage.ENDED, status=86),))
    watch.look(1)
    watch.hold("npu0", STUCK)
    assert [watch.look(OUTLIVES_S), watch.look(OUTLIVES_S)] == [[], []]


# ---------------------------------------------------------------------- with real processes


@contextmanager
def frozen() -> Iterator[int]:
    """A process that was killed, and that is there until it is thawed."""
    with (
        subprocess.Popen(["sleep", "600"]) as process,
        freezer(f"nodeagent-test-{os.getpid()}-stuck") as group,
    ):
        freeze(group, process.pid)
        process.send_signal(signal.SIGKILL)
        yield process.pid


@asynccontextmanager
async def watched(folder: Path) -> AsyncIterator[DoorStage]:
    async with staged(folder, catalog=job_catalog()) as stage:
        stage.listener.unkillable.look_each_s = 0.05
        yield stage


def open_on(stage: DoorStage) -> set[str]:
    names = {each.id: each.name for each in stage.feed.current.view.devices}
    return {names[each.device_id] for each in stage.feed.current.view.conditions if each.code == CODE}


async def test_a_supervisor_s_word_opens_nothing_though_its_process_holds_the_chip(tmp_path: Path) -> None:
    async with watched(tmp_path) as stage, connected(stage.socket) as supervisor:
        await stage.hold("npu0", holder(supervisor.pid))
        await supervisor.begin()
        await supervisor.say(RunEvent.STARTED)
        await supervisor.say(RunEvent.UNKILLABLE, why="because I say so")
        assert (await supervisor.wanted("leave")).isolated is False
        assert (open_on(stage), stage.events(EventKind.RAISED)) == (set(), [])
        supervisor.send(lines.Bye(number=9, status=86))
        await stage.job(f"pid:{supervisor.pid}", stage=JobStage.ENDED)


@pytest.mark.root
@needs("freezer")
async def test_what_the_supervisor_says_is_seen_before_the_job_leaves(tmp_path: Path) -> None:
    """The job must not come back to the node before the chip takes no new work."""
    with frozen() as pid:
        async with watched(tmp_path) as stage, connected(stage.socket) as supervisor:
            await stage.hold("npu0", holder(supervisor.pid), holder(pid))
            await stage.hold("npu1", holder(supervisor.pid))
            await supervisor.begin()
            await supervisor.say(RunEvent.STARTED)
            await supervisor.say(RunEvent.UNKILLABLE)
            assert (await supervisor.wanted("leave")).isolated is True
            assert open_on(stage) == {"npu0"}
            verdicts = [stage.device(name).verdict.value for name in ("node", "npu0", "npu1")]
            assert verdicts == ["ALLOW", "NO_NEW_JOBS", "ALLOW"]


@pytest.mark.root
@needs("freezer")
async def test_it_comes_and_goes_without_any_supervisor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unkillable, "LASTS_S", 0.2)
    async with watched(tmp_path) as stage:
        with frozen() as pid:
            await stage.do(ProcessesListed(device="npu1", holders=(holder(pid),)))
            await stage.comes(lambda: open_on(stage) == {"npu1"}, "the fault")
        await stage.comes(lambda: open_on(stage) == set(), "its end")
        assert stage.device("npu1").verdict.value == "ALLOW"


async def test_an_old_fault_of_the_node_is_cleared(tmp_path: Path) -> None:
    async with watched(tmp_path) as stage:
        old = Signal(source="agent", device="node", code=CODE, assertion=Assertion.ONCE)
        await stage.do(old)
        await stage.comes(lambda: open_on(stage) == set(), "its end")
