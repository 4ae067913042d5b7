"""Devices that are let alone while they are reset: nothing that they do or fail to do is a fault."""

import asyncio
import os
from pathlib import Path

from nodeagent.core.model import ActiveSet, DeviceGone, Loss, SourceAbsent, SourceBack, SourceLost
from tests.daemon.staged import HANG_S, fake, is_alive, put, release_fifo, staged

REASON = "not read during the reset of chip1"


async def test_a_device_that_is_let_alone_is_told_as_not_observed_and_is_not_asked(control: Path) -> None:
    async with staged(fake(control)) as stage:
        await stage.back()
        await stage.supervisor.rest(["chip1"], REASON)
        assert await stage.lost("chip1") == SourceLost(source="fake", device="chip1", reason=REASON)
        seen = len(stage.inputs)
        await stage.polled("chip0", 3)
        await stage.polled("chip2")
        asked = {given.device for given in stage.inputs[seen:] if isinstance(given, ActiveSet)}
        assert asked == {"chip0", "chip2"}
        await stage.supervisor.wake(["chip1"])
        await stage.back("chip1", after=seen)


async def test_what_it_does_meanwhile_is_no_fault(control: Path) -> None:
    async with staged(fake(control, call_deadline_s=HANG_S)) as stage:
        await stage.back()
        os.mkfifo(control / "hang-chip1")
        await stage.supervisor.rest(["chip1"], REASON)
        put(control / "lost-chip1", "fell off the bus")
        await asyncio.sleep(HANG_S)  # the time of a call that would be late, were it asked for
        await stage.polled("chip0")
        release_fifo(control / "hang-chip1")
        (control / "hang-chip1").unlink()
        (control / "lost-chip1").unlink()
        await stage.polled("chip0", 3)
        seen = len(stage.inputs)
        await stage.supervisor.wake(["chip1"])
        await stage.back("chip1", after=seen)
        assert stage.faults("device_lost") == stage.faults("driver_unresponsive") == []
        assert not any(isinstance(given, DeviceGone) for given in stage.inputs)


async def test_one_that_is_lost_when_it_is_over_is_told_as_lost(control: Path) -> None:
    async with staged(fake(control)) as stage:
        await stage.back()
        await stage.supervisor.rest(["chip1"], REASON)
        put(control / "lost-chip1", "fell off the bus")
        await stage.polled("chip0", 3)
        assert stage.faults("device_lost") == []
        await stage.supervisor.wake(["chip1"])
        await stage.signal("device_lost", "chip1", "occur")


async def test_a_worker_that_crashes_meanwhile_lets_them_alone_too(control: Path) -> None:
    async with staged(fake(control)) as stage:
        await stage.back()
        await stage.supervisor.rest(["chip1"], REASON)
        put(control / "crash-chip0")
        await stage.signal("worker_crashed.fake", "node", "occur")
        (control / "crash-chip0").unlink()
        seen = len(stage.inputs)
        await stage.back(after=seen)
        await stage.polled("chip0", 2)
        await stage.polled("chip2")
        asked = {given.device for given in stage.inputs[seen:] if isinstance(given, ActiveSet)}
        assert asked == {"chip0", "chip2"}


async def test_where_nothing_may_be_open_the_worker_ends_and_starts_again(control: Path) -> None:
    async with staged(fake(control)) as stage:
        await stage.back()
        pid = stage.health.pid
        assert pid is not None
        assert await stage.supervisor.let_go(REASON)
        assert not is_alive(pid)
        assert await stage.lost() == SourceLost(source="fake", reason=REASON, how=Loss.RELEASED)
        assert stage.health.pid is None
        seen = len(stage.inputs)
        stage.supervisor.take_up()
        await stage.back(after=seen)
        assert stage.faults("worker_crashed") == []


async def test_a_source_that_lets_go_before_its_first_read_is_told_as_lost(control: Path) -> None:
    os.mkfifo(control / "hang-chip1")
    async with staged(fake(control)) as stage:
        await stage.until(lambda: stage.health.state == "ready" or None, "a worker that said hello")
        assert await stage.supervisor.let_go(REASON)
        assert await stage.lost() == SourceLost(source="fake", reason=REASON, how=Loss.RELEASED)
        assert not any(isinstance(given, SourceBack) for given in stage.inputs)


async def test_of_a_library_that_is_not_here_nothing_is_lost(control: Path) -> None:
    put(control / "absent", "")
    async with staged(fake(control)) as stage:
        await stage.until(lambda: stage.health.absent or None, "a look for the library")
        assert await stage.supervisor.let_go(REASON)
        assert [type(given) for given in stage.inputs] == [SourceAbsent]


async def test_a_worker_that_was_left_behind_in_the_kernel_has_not_let_go(control: Path) -> None:
    os.mkfifo(control / "stuck-chip0")
    async with staged(fake(control, devices="chip0", call_deadline_s=HANG_S)) as stage:
        await stage.until(lambda: stage.health.abandoned_pids, "an abandoned worker")
        assert not await stage.supervisor.let_go(REASON)
        release_fifo(control / "stuck-chip0")
        (control / "stuck-chip0").unlink()
        seen = len(stage.inputs)
        stage.supervisor.take_up()
        await stage.back(after=seen)
