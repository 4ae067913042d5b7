"""The real kernel log, through a real worker: lines, restarts, an overrun ring, a storm, kill -9."""

import asyncio
import os
import signal
import sys
from typing import Any

import pytest

from nodeagent.core.model import ActiveSet, Signal
from nodeagent.daemon.workers.worker import WorkerSpec
from nodeagent.store.records import Cursor
from tests.daemon.staged import BOOT, Staged, staged, worker_spec
from tests.drivers.conftest import KernelLogWriter

pytestmark = pytest.mark.root

RING_OVERRUN_LINES = 5_000
STORM_LINES = 100_000


def real(kmsg: KernelLogWriter, **given: Any) -> WorkerSpec:
    defaults: dict[str, Any] = {
        "source": "kmsg",
        "command": (sys.executable, "-m", "nodeagent.worker", "kmsg"),
        "patterns": (kmsg.pattern,),
        "required": True,
    }
    return worker_spec("", **{**defaults, **given})


def reported(stage: Staged, code: str) -> list[Signal]:
    return [given for given in stage.inputs if isinstance(given, Signal) and given.code == code]


def total(stage: Staged, code: str) -> int:
    return sum(given.count for given in reported(stage, code))


def last_cursor(stage: Staged) -> Cursor | None:
    return next((d.cursor for d in reversed(stage.deliveries) if d.cursor is not None), None)


def newest_seq() -> int:
    """The number of the newest record, read the slow way."""
    newest = -1
    descriptor = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    try:
        while True:
            try:
                newest = int(os.read(descriptor, 16384).split(b",", 2)[1])
            except BrokenPipeError:
                continue
            except BlockingIOError:
                return newest
    finally:
        os.close(descriptor)


async def test_line_arrives_as_written_by_user_space(kmsg: KernelLogWriter) -> None:
    async with staged(real(kmsg)) as stage:
        await stage.back()
        kmsg.write("LIVE", "with a\ttab and an é")
        live = await stage.signal("LIVE", "node", "once")
        assert not live.trusted
        assert not live.backdated
        assert live.evidence["line"] == f"{kmsg.marker} LIVE with a\\x09tab and an é"
        cursor = last_cursor(stage)
        assert cursor is not None
        # Somebody else's line may have come behind it.
        assert (cursor.boot_id, cursor.seq >= int(live.evidence["kernel_seq"])) == (BOOT, True)


async def test_line_of_user_space_is_trusted_on_request(kmsg: KernelLogWriter) -> None:
    async with staged(real(kmsg, config={"trust_userspace": True})) as stage:
        await stage.back()
        kmsg.write("LIVE")
        assert (await stage.signal("LIVE", "node", "once")).trusted


async def test_ring_is_read_before_the_source_is_back(kmsg: KernelLogWriter) -> None:
    kmsg.write("BEFORE")
    async with staged(real(kmsg)) as stage:
        back = await stage.back()
        (before,) = reported(stage, "BEFORE")
        assert before.backdated
        read = next(given for given in stage.inputs if isinstance(given, ActiveSet))
        assert (read.device, read.codes, read.complete) == ("*", (), True)
        assert stage.inputs.index(before) < stage.inputs.index(read) < stage.inputs.index(back)


async def test_story_02_another_boot_yields_every_line_once_and_the_same_boot_none(
    kmsg: KernelLogWriter,
) -> None:
    for _ in range(3):
        kmsg.write("EARLY")
    earlier = Cursor(boot_id="00000000-0000-0000-0000-000000000000", seq=10**9)
    async with staged(real(kmsg, cursor=earlier)) as stage:
        await stage.back()
        assert total(stage, "EARLY") == 3
        cursor = last_cursor(stage)
    async with staged(real(kmsg, cursor=cursor)) as stage:
        await stage.back()
        kmsg.write("LATER")
        await stage.signal("LATER", "node", "once")
        assert total(stage, "EARLY") == 0
        assert total(stage, "LATER") == 1


async def test_cursor_beyond_the_ring_is_not_believed(kmsg: KernelLogWriter) -> None:
    kmsg.write("EARLY")
    async with staged(real(kmsg, cursor=Cursor(boot_id=BOOT, seq=10**12))) as stage:
        await stage.back()
        assert total(stage, "EARLY") == 1
        assert stage.health.records_lost == 0


def accounted(stage: Staged, *codes: str) -> int:
    return sum(total(stage, code) for code in codes) + stage.health.records_lost


def assert_exact(stage: Staged, after_seq: int, written: int, *codes: str) -> None:
    """Every record after ``after_seq`` was reported or lost, but for foreign ones, read and left."""
    newest = last_cursor(stage)
    assert newest is not None
    records = newest.seq - after_seq
    foreign = records - written
    assert records - foreign <= accounted(stage, *codes) <= records


async def test_story_03_overrun_is_counted_exactly_and_the_next_fault_is_seen(kmsg: KernelLogWriter) -> None:
    async with staged(real(kmsg, poll_interval_s=0.02)) as stage:
        await stage.back()
        kmsg.write("START")
        started = await stage.signal("START", "node", "once")
        pid = stage.health.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        kmsg.write("FLOOD", "x" * 200, times=RING_OVERRUN_LINES)
        kmsg.write("AFTER")
        os.kill(pid, signal.SIGCONT)
        await stage.signal("AFTER", "node", "once")

        gap = await stage.signal("log_gap", "node", "once")
        assert gap.evidence["reason"] == f"{gap.count} records were overwritten before they could be read"
        assert 0 < total(stage, "FLOOD") < RING_OVERRUN_LINES
        assert stage.health.records_lost == total(stage, "log_gap")
        assert_exact(stage, int(started.evidence["kernel_seq"]), RING_OVERRUN_LINES + 1, "FLOOD", "AFTER")
        assert stage.health.pid == pid
        assert stage.faults("driver_unresponsive") == []


async def test_records_overwritten_while_the_daemon_was_down_are_counted(kmsg: KernelLogWriter) -> None:
    before = newest_seq()
    kmsg.write("FLOOD", "x" * 200, times=RING_OVERRUN_LINES)
    async with staged(real(kmsg, cursor=Cursor(boot_id=BOOT, seq=before))) as stage:
        await stage.back()
        assert stage.health.records_lost > 0
        assert_exact(stage, before, RING_OVERRUN_LINES, "FLOOD")


async def test_story_04_storm_is_bounded_and_another_code_gets_through(kmsg: KernelLogWriter) -> None:
    async with staged(real(kmsg)) as stage:
        await stage.back()
        before = newest_seq()
        await asyncio.to_thread(storm, kmsg)
        await stage.signal("END", "node", "once")
        assert_exact(stage, before, STORM_LINES + 2, "STORM", "OTHER", "END")
        assert len(reported(stage, "STORM")) <= len(reported(stage, "log_gap")) + 30


async def test_worker_killed_in_the_storm_repeats_nothing_and_drops_nothing(kmsg: KernelLogWriter) -> None:
    async with staged(real(kmsg)) as stage:
        await stage.back()
        before = newest_seq()
        for _ in range(3):
            pid = stage.health.pid or await next_pid(stage, 0)
            storming = asyncio.create_task(asyncio.to_thread(kmsg.write, "STORM", times=STORM_LINES))
            os.kill(pid, signal.SIGKILL)
            await storming
            await next_pid(stage, pid)
        kmsg.write("END")
        await stage.signal("END", "node", "once")
        assert_exact(stage, before, 3 * STORM_LINES + 1, "STORM", "END")


async def next_pid(stage: Staged, before: int) -> int:
    return await stage.until(lambda: stage.health.pid if stage.health.pid != before else None)


def storm(kmsg: KernelLogWriter) -> None:
    kmsg.write("STORM", times=STORM_LINES // 2)
    kmsg.write("OTHER")
    kmsg.write("STORM", times=STORM_LINES // 2)
    kmsg.write("END")
