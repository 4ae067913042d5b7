"""A job leaves a node that is out of service only once the scheduler's bridge has taken note of that."""

from pathlib import Path

from nodeagent.api.jobs.leave_after import HOLD_LEAVE_S, LeaveAfter
from nodeagent.config.sections import JobsConfig
from nodeagent.core.model import Assertion, JobStage, Level, Signal
from nodeagent.job import lines
from nodeagent.job.model import RunEvent, RunRequest
from nodeagent.store.consumers import Consumer
from tests.api.jobs.stage import DoorStage, staged
from tests.api.jobs.supervisor import Supervisor, connected, holder
from tests.waiting import until

CONFIG = JobsConfig(leave_after="slurm")


async def runs_on_npu0(stage: DoorStage, supervisor: Supervisor) -> None:
    await stage.hold("npu0", holder(supervisor.pid))
    await supervisor.begin()
    await supervisor.say(RunEvent.STARTED)


async def breaks(stage: DoorStage, level: Level = Level.SEPARATE_NPU) -> None:
    await stage.do(Signal(source="ascend", device="npu0", code=level.value, assertion=Assertion.OCCUR))


async def acknowledge(stage: DoorStage) -> None:
    await stage.ledger.ack("slurm", "uid:0", stage.ledger.store_id, stage.feed.current.seq)


async def test_it_is_told_to_leave_once_the_consumer_has_acknowledged_the_verdict(tmp_path: Path) -> None:
    async with staged(tmp_path, CONFIG) as stage, connected(stage.socket) as supervisor:
        await runs_on_npu0(stage, supervisor)
        await breaks(stage)
        await stage.job(f"pid:{supervisor.pid}", stage=JobStage.LEAVING)
        supervisor.send(lines.AskChips(number=1))
        assert isinstance(await supervisor.next(), lines.ChipReadings)  # and no word to leave before it

        await acknowledge(stage)
        assert (await supervisor.hear(RunRequest)).wish.value == "leave"


async def test_one_that_leaves_by_itself_is_let_go_after_the_acknowledgement(tmp_path: Path) -> None:
    async with staged(tmp_path, CONFIG) as stage, connected(stage.socket) as supervisor:
        await runs_on_npu0(stage, supervisor)
        name = f"pid:{supervisor.pid}"
        supervisor.send(lines.Bye(number=2, status=86, why="its chip failed"))
        await stage.job(name, stage=JobStage.ENDED)
        before = stage.feed.current.seq
        await acknowledge(stage)
        assert (await supervisor.hear(lines.ReportTaken)).number == 2
        kept = stage.ledger.consumer("slurm")
        assert kept is not None
        assert kept.seq >= before


async def test_nobody_waits_for_one_whose_supervisor_is_gone(tmp_path: Path) -> None:
    async with staged(tmp_path, CONFIG) as stage, connected(stage.socket) as supervisor:
        await runs_on_npu0(stage, supervisor)
        await breaks(stage)
        leaving = stage.listener._shared.leaving
        await until(lambda: leaving.is_holding, "it is held")
        await supervisor.kill()
        await until(lambda: not leaving.is_holding, "it is forgotten")


async def test_one_that_leaves_a_good_node_waits_for_nobody(tmp_path: Path) -> None:
    async with staged(tmp_path, CONFIG) as stage, connected(stage.socket) as supervisor:
        await runs_on_npu0(stage, supervisor)
        supervisor.send(lines.Bye(number=2, status=75, why="it is well"))
        assert (await supervisor.hear(lines.ReportTaken)).number == 2


def test_nobody_is_held_for_longer_than_ten_seconds() -> None:
    now_s = [100.0]
    kept: list[Consumer] = []
    leaving = LeaveAfter(lambda _name: kept[-1] if kept else None, lambda: now_s[0])
    assert leaving.holds("slurm:7", 12, "slurm")
    now_s[0] += HOLD_LEAVE_S - 0.1
    kept.append(Consumer(name="slurm", owner="uid:0", seq=11, acked_wall_ns=0))
    assert leaving.holds("slurm:7", 13, "slurm")
    now_s[0] += 0.1
    assert not leaving.holds("slurm:7", 14, "slurm")
    assert not leaving.is_holding
    assert not leaving.holds("slurm:7", 15, "slurm"), "it was let go, and stays so"


def test_what_happens_after_the_verdict_holds_nobody() -> None:
    kept = Consumer(name="slurm", owner="uid:0", seq=12, acked_wall_ns=0)
    seen: list[Consumer] = []
    leaving = LeaveAfter(lambda _name: seen[-1] if seen else None, lambda: 0.0)
    assert leaving.holds("slurm:7", 12, "slurm")
    seen.append(kept)
    assert not leaving.holds("slurm:7", 99, "slurm")


def test_without_a_consumer_nobody_is_held() -> None:
    assert not LeaveAfter(lambda _name: None).holds("slurm:7", 12, "")
