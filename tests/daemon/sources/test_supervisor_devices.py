"""Devices that answer, answer late, answer with a failure, are missing, or come back."""

import asyncio
import os
from pathlib import Path

from nodeagent.core.catalog.catalog import Catalog, Pattern, ThresholdRule
from nodeagent.core.model import (
    ActiveSet,
    DeviceGone,
    DeviceSeen,
    Edge,
    ProcessesListed,
    Signal,
    SourceBack,
    SourceLost,
)
from tests.daemon.staged import HANG_S, fake, put, release_fifo, staged, threads_of


async def test_readings_are_shown_only_while_they_are_observed(control: Path) -> None:
    async with staged(fake(control, call_deadline_s=HANG_S)) as stage:
        await stage.back()
        await stage.until(lambda: sorted(stage.health.readings) == ["*", "chip0", "chip1", "chip2"])

        os.mkfifo(control / "hang-chip0")
        put(control / "fail-chip1", "device is busy")
        await stage.lost("chip0")
        await stage.lost("chip1")
        assert sorted(stage.health.readings) == ["*", "chip2"]

        put(control / "lost-chip2", "fell off the bus")
        await stage.signal("device_lost", "chip2", "occur")
        assert sorted(stage.health.readings) == ["*"]

        release_fifo(control / "hang-chip0")
        (control / "hang-chip0").unlink()
        await stage.back("chip0")
        assert stage.health.readings["chip0"] == {"temperature_celsius": 41.5}


async def test_source_is_back_once_every_device_has_answered(control: Path) -> None:
    async with staged(fake(control, poll_interval_s=60.0)) as stage:
        await stage.back()
        kinds = [type(given) for given in stage.inputs[: stage.inputs.index(SourceBack(source="fake"))]]
        seen = [given.device for given in stage.inputs if isinstance(given, DeviceSeen)]
        read = [given.device for given in stage.inputs if isinstance(given, ActiveSet)]
        assert seen == ["chip0", "chip1", "chip2"]
        assert sorted(read[:3]) == seen
        assert kinds.count(ActiveSet) == 3


async def test_active_codes_and_readings_come_through(control: Path) -> None:
    async with staged(fake(control, "chip0")) as stage:
        await stage.polled("chip0")
        found = next(given for given in stage.inputs if isinstance(given, ActiveSet))
        assert [code.code for code in found.codes] == ["CAFE"]
        assert found.complete
        assert stage.health.readings["chip0"] == {"temperature_celsius": 41.5}
        assert stage.health.last_poll_ok


async def test_story_01_one_device_hangs_and_the_others_go_on(control: Path) -> None:
    os.mkfifo(control / "hang-chip1")
    async with staged(fake(control, call_deadline_s=HANG_S)) as stage:
        await stage.signal("driver_unresponsive", "chip1", "occur")
        await stage.lost("chip1")
        pid = stage.health.pid
        await stage.polled("chip0", times=15)
        await stage.polled("chip2", times=5)
        assert stage.health.pid == pid
        assert stage.health.late_devices == ("chip1",)
        assert stage.faults("driver_unresponsive") == [("chip1", "occur")]
        assert not [given for given in stage.inputs if isinstance(given, SourceLost) and not given.device]

        release_fifo(control / "hang-chip1")
        (control / "hang-chip1").unlink()
        await stage.signal("driver_unresponsive", "chip1", "recover", after=len(stage.inputs))
        await stage.back("chip1")
        assert stage.faults("driver_unresponsive") == [("chip1", "occur"), ("chip1", "recover")]
        assert stage.health.pid == pid


async def test_hanging_call_is_asked_for_once(control: Path) -> None:
    os.mkfifo(control / "hang-chip1")
    async with staged(fake(control, call_deadline_s=HANG_S)) as stage:
        await stage.signal("driver_unresponsive", "chip1", "occur")
        threads = threads_of(stage.health.pid)
        await stage.polled("chip0", times=20)
        assert threads_of(stage.health.pid) <= threads


async def test_holders_are_told_when_they_change_and_not_when_they_are_listed_in_another_order(
    control: Path,
) -> None:
    async with staged(fake(control, "chip0")) as stage:
        for pids in ("7 8", "8 7", "8", ""):
            put(control / "held-chip0", pids)
            await stage.polled("chip0", times=3)
        reported = [
            [each.pid for each in given.holders]
            for given in stage.inputs
            if isinstance(given, ProcessesListed)
        ]
        assert reported == [[7, 8], [8], []]


async def test_failing_call_loses_the_device_but_is_no_silence(control: Path) -> None:
    put(control / "fail-chip0", "device is busy")
    async with staged(fake(control, "chip0 chip1")) as stage:
        lost = await stage.lost("chip0")
        await stage.polled("chip1", times=3)
        assert lost.reason == "the driver answers: device is busy"
        assert stage.faults("driver_unresponsive") == []
        assert sum(given == lost for given in stage.inputs) == 1

        (control / "fail-chip0").unlink()
        await stage.back("chip0")


async def test_source_whose_every_call_fails_is_lost_and_comes_back(control: Path) -> None:
    put(control / "fail-chip0", "no such device")
    async with staged(fake(control, "chip0", required=True)) as stage:
        lost = await stage.lost()
        assert lost == SourceLost(
            source="fake",
            reason="no device can be read; chip0: the driver answers: no such device",
            required=True,
        )
        (control / "fail-chip0").unlink()
        await stage.back()


async def test_story_12_missing_device_is_told_once_for_its_slot(control: Path) -> None:
    put(control / "lost-chip1", "PCI shows it, the library does not")
    async with staged(fake(control)) as stage:
        reported = await stage.signal("device_lost", "chip1", "occur")
        await stage.polled("chip0", times=10)
        assert reported.evidence["reason"] == "PCI shows it, the library does not"
        assert stage.faults("device_lost") == [("chip1", "occur")]

        (control / "lost-chip1").unlink()
        await stage.signal("device_lost", "chip1", "recover")
        await stage.polled("chip1")


async def test_story_12_device_that_vanishes_is_gone_and_lost(control: Path) -> None:
    async with staged(fake(control)) as stage:
        await stage.back()
        put(control / "lost-chip2", "fell off the bus")
        await stage.signal("device_lost", "chip2", "occur")
        gone = next(given for given in stage.inputs if isinstance(given, DeviceGone))
        assert gone == DeviceGone(source="fake", device="chip2", reason="fell off the bus")


async def test_driver_without_devices_is_no_fault(control: Path) -> None:
    async with staged(fake(control, "", required=True)) as stage:
        await stage.back()
        assert all(given.assertion == "recover" for given in stage.inputs if isinstance(given, Signal))


async def test_recovery_is_told_for_what_an_earlier_daemon_may_have_raised(control: Path) -> None:
    async with staged(fake(control, "chip0")) as stage:
        await stage.signal("driver_unresponsive", "chip0", "recover")
        await stage.signal("device_lost", "chip0", "recover")
        await stage.signal("worker_crashed.fake", "node", "recover")
        await stage.polled("chip0", times=5)
        recovered = [(given.code, given.device) for given in stage.inputs if isinstance(given, Signal)]
        assert sorted(recovered) == [
            ("device_lost", "chip0"),
            ("driver_unresponsive", "chip0"),
            ("driver_unresponsive.fake", "node"),
            ("worker_crashed.fake", "node"),
        ]


def patterns(*given: Pattern) -> Catalog:
    return Catalog(digest="", patterns=given)


def hotter_than(above: float) -> ThresholdRule:
    return ThresholdRule(
        id="hot", code="HOT", metric="temperature_celsius", above=above, clear_below=above, for_ns=0
    )


async def test_an_answer_of_a_device_that_has_gone_meanwhile_is_no_nonsense(control: Path) -> None:
    async with staged(fake(control, "chip0 chip1")) as stage:
        await stage.back()
        os.mkfifo(control / "hang-chip1")
        await stage.polled("chip0", times=3)
        put(control / "lost-chip1", "fell off the bus")
        await stage.signal("device_lost", "chip1", "occur")
        release_fifo(control / "hang-chip1")
        (control / "hang-chip1").unlink()
        (control / "lost-chip1").unlink()
        await stage.signal("device_lost", "chip1", "recover", after=len(stage.inputs))
        await stage.polled("chip1")
        assert stage.health.garbled == 0


async def test_readings_of_a_device_that_is_let_alone_are_not_judged(control: Path) -> None:
    os.mkfifo(control / "hang-chip0")
    async with staged(fake(control, "chip0 chip1", threshold=[hotter_than(40)])) as stage:
        await stage.polled("chip1", times=3)
        await stage.supervisor.rest(["chip0"], "it is reset")
        release_fifo(control / "hang-chip0")
        await stage.polled("chip1", times=3)
        assert {given.device for given in stage.inputs if isinstance(given, Edge)} == {"chip1"}


async def test_readings_are_told_where_a_rule_asks_and_anew_after_a_reload(control: Path) -> None:
    async with staged(fake(control, "chip0", threshold=[hotter_than(40)])) as stage:
        await stage.polled("chip0", times=2)
        edges = [given for given in stage.inputs if isinstance(given, Edge)]
        assert edges == [Edge(source="fake", device="chip0", rule="hot", above=True, value=41.5)]
        assert stage.inputs.index(edges[0]) < stage.inputs.index(SourceBack(source="fake"))
        stage.supervisor.reload(Catalog(digest="", threshold=(hotter_than(50),)))
        await stage.until(
            lambda: Edge(source="fake", device="chip0", rule="hot", above=False, value=41.5) in stage.inputs
        )


async def test_patterns_are_handed_on_at_a_reload(control: Path) -> None:
    async with staged(fake(control, "chip0")) as stage:
        await stage.back()
        stage.supervisor.reload(patterns(Pattern(id="NEW", code="X", regex="x", device="node")))
        reloaded = control / "reloaded"
        await stage.until(lambda: reloaded.exists() and reloaded.read_text() == "NEW", "the reload")


async def test_reload_before_the_driver_is_open_is_not_lost(control: Path) -> None:
    os.mkfifo(control / "hang-open")
    async with staged(fake(control, "chip0")) as stage:
        await stage.until(lambda: stage.health.state == "starting")
        stage.supervisor.reload(patterns(Pattern(id="EARLY", code="X", regex="x", device="node")))
        await asyncio.to_thread((control / "hang-open").write_bytes, b"")  # waits for the driver to be there
        reloaded = control / "reloaded"
        await stage.until(lambda: reloaded.exists() and reloaded.read_text() == "EARLY", "the reload")
