"""How workers end: by themselves, by signals, by being left behind, and with the daemon."""

import os
import signal
from pathlib import Path

import pytest

from nodeagent.core.model import Loss, SourceAbsent, SourceBack, SourceLost
from nodeagent.daemon.workers.worker import WorkerSpec
from tests.daemon.staged import HANG_S, is_alive, put, release_fifo, staged, worker_spec

FAKE = "tests.daemon.fake_driver"


def fake(control: Path, devices: str = "chip0 chip1", **given: object) -> WorkerSpec:
    return worker_spec(FAKE, config={"control": str(control), "devices": devices}, **given)


async def test_crash_is_told_with_its_signal_and_the_worker_comes_back(control: Path) -> None:
    async with staged(fake(control)) as stage:
        await stage.back()
        first = stage.health.pid
        put(control / "crash-chip0")
        reported = await stage.signal("worker_crashed.fake", "node", "occur")
        await stage.lost()
        assert stage.health.readings == {}
        (control / "crash-chip0").unlink()
        after = stage.inputs.index(reported)
        await stage.back(after=after)
        await stage.signal("worker_crashed.fake", "node", "recover", after=after)
        assert reported.evidence["source"] == "fake"
        assert reported.evidence["reason"].startswith("ended by itself: killed by SIGSEGV; its last words: ")
        assert "in poll" in reported.evidence["reason"]
        assert stage.health.pid != first


async def test_all_devices_hang_and_the_worker_is_replaced(control: Path) -> None:
    for device in ("chip0", "chip1"):
        os.mkfifo(control / f"hang-{device}")
    async with staged(fake(control, call_deadline_s=HANG_S)) as stage:
        await stage.lost()
        first = stage.health.pid
        for device in ("chip0", "chip1"):
            (control / f"hang-{device}").unlink()
        await stage.back()
        assert stage.health.pid != first
        assert first is not None
        assert not is_alive(first)
        for device in ("chip0", "chip1"):
            assert ("driver_unresponsive", (device, "occur")) in [
                ("driver_unresponsive", reported) for reported in stage.faults("driver_unresponsive")
            ]
            await stage.signal("driver_unresponsive", device, "recover")
        assert stage.faults("worker_crashed.fake") == []


async def test_worker_deaf_to_sigterm_is_killed(control: Path) -> None:
    put(control / "deaf")
    os.mkfifo(control / "hang-chip0")
    async with staged(fake(control, "chip0", call_deadline_s=HANG_S)) as stage:
        await stage.until(lambda: stage.health.state == "killing", "killing")
        (control / "hang-chip0").unlink()
        (control / "deaf").unlink()
        await stage.back()
        assert stage.health.restarts == 1


async def test_hang_in_the_kernel_is_left_alone_and_one_replacement_skips_the_device(control: Path) -> None:
    os.mkfifo(control / "stuck-chip1")
    os.mkfifo(control / "hang-chip0")
    async with staged(fake(control, call_deadline_s=HANG_S)) as stage:
        (pid,) = await stage.until(lambda: stage.health.abandoned_pids, "an abandoned worker")
        for device in ("chip0", "chip1"):
            await stage.signal("driver_unresponsive", device, "occur")
        (control / "hang-chip0").unlink()
        await stage.until(lambda: stage.health.observing or None, "the replacement's first read")
        await stage.signal("driver_unresponsive", "chip0", "recover")
        await stage.polled("chip0", times=12)
        back = stage.inputs.index(SourceBack(source="fake"))
        skipped = await stage.lost("chip1", after=back)

        assert skipped.reason == "not read: an earlier call for it hangs in the driver"
        assert is_alive(pid)
        assert list(stage.health.abandoned_pids) == [pid]
        assert stage.health.restarts == 1
        assert ("chip1", "recover") not in stage.faults("driver_unresponsive")

        release_fifo(control / "stuck-chip1")
        (control / "stuck-chip1").unlink()
        await stage.signal("driver_unresponsive", "chip1", "recover")
        assert not stage.health.abandoned_pids
        assert not is_alive(pid)


async def test_absent_library_is_no_fault_where_nothing_is_required(control: Path) -> None:
    put(control / "absent")
    async with staged(fake(control, absent_retry_s=0.05)) as stage:
        await stage.until(lambda: stage.health.restarts >= 2, "another look for it")
        assert stage.inputs == [SourceAbsent(source="fake", reason="libfake.so: no such library")]
        (control / "absent").unlink()
        await stage.back()


@pytest.mark.parametrize(
    ("why", "required", "reason"),
    [
        ("absent", True, "libfake.so: no such library"),
        ("broken", False, "libfake.so: wrong version"),
    ],
)
async def test_unusable_library_is_a_lost_source_told_once(
    control: Path, why: str, required: bool, reason: str
) -> None:
    put(control / why)
    async with staged(fake(control, required=required)) as stage:
        await stage.until(lambda: stage.health.restarts >= 2, "another look for it")
        assert stage.inputs == [
            SourceLost(source="fake", reason=reason, required=required, how=Loss.NOT_RUNNING)
        ]
        (control / why).unlink()
        await stage.back()


async def test_absent_library_keeps_no_process(control: Path) -> None:
    put(control / "absent")
    async with staged(fake(control, absent_retry_s=60.0)) as stage:
        await stage.until(lambda: stage.inputs and stage.health.pid is None, "the end of its worker")
        assert stage.health.state == "waiting"
        assert [type(given) for given in stage.inputs] == [SourceAbsent]


async def test_library_absent_where_pci_shows_devices_loses_each_of_their_slots_once(control: Path) -> None:
    put(control / "absent", "0000:c1:00.0 0000:c2:00.0")
    async with staged(fake(control)) as stage:
        await stage.until(lambda: stage.health.restarts >= 2, "another look for it")
        assert stage.faults("device_lost") == [("0000:c1:00.0", "occur"), ("0000:c2:00.0", "occur")]
        assert [given for given in stage.inputs if isinstance(given, SourceLost)] == [
            SourceLost(source="fake", reason="libfake.so: no such library", how=Loss.NOT_RUNNING)
        ]
        (control / "absent").unlink()
        await stage.signal("device_lost", "0000:c1:00.0", "recover")
        await stage.signal("device_lost", "0000:c2:00.0", "recover")
        await stage.back()


async def test_library_that_is_removed_while_it_is_watched_is_lost_and_looked_for_without_delay(
    control: Path,
) -> None:
    async with staged(fake(control, absent_retry_s=60.0)) as stage:
        await stage.back()
        put(control / "absent")
        put(control / "outdated", "the driver was unloaded")
        lost = await stage.lost()
        assert lost.reason == "the driver was unloaded"
        (control / "outdated").unlink()
        await stage.until(lambda: stage.health.restarts >= 2, "a look for it while it is absent")
        (control / "absent").unlink()
        await stage.back(after=stage.inputs.index(lost))
        assert stage.faults("worker_crashed") == []


async def test_library_that_was_upgraded_is_opened_anew_by_another_process(control: Path) -> None:
    async with staged(fake(control)) as stage:
        await stage.back()
        first = stage.health.pid
        put(control / "outdated", "library and driver are of different versions")
        lost = await stage.lost()
        (control / "outdated").unlink()
        await stage.back(after=stage.inputs.index(lost))
        assert lost.reason == "library and driver are of different versions"
        assert stage.health.pid != first
        assert stage.faults("worker_crashed") == []


async def test_worker_that_cannot_be_started_is_a_lost_source(control: Path) -> None:
    async with staged(fake(control, command=("/no/such/program",))) as stage:
        lost = await stage.lost()
        assert lost.reason.startswith("cannot start its worker: [Errno 2]")


async def test_stop_closes_the_driver(control: Path) -> None:
    async with staged(fake(control)) as stage:
        await stage.back()
        pid = stage.health.pid
    assert (control / "closed").exists()
    assert pid is not None
    assert not is_alive(pid)


async def test_stop_ends_a_worker_whose_calls_all_hang(control: Path) -> None:
    os.mkfifo(control / "hang-chip0")
    async with staged(fake(control, "chip0")) as stage:
        pid = await stage.until(lambda: stage.health.pid, "a worker")
    assert not is_alive(pid)


async def test_stop_leaves_behind_what_is_stuck_in_the_kernel(control: Path) -> None:
    os.mkfifo(control / "stuck-chip0")
    async with staged(fake(control, "chip0", call_deadline_s=HANG_S)) as stage:
        (pid,) = await stage.until(lambda: stage.health.abandoned_pids, "an abandoned worker")
        # Ours is stuck only as far as a signal: stopped, it can no more end itself than a real one.
        os.kill(pid, signal.SIGSTOP)
    try:
        assert is_alive(pid)
    finally:
        os.kill(pid, signal.SIGKILL)
