"""Calls into the NPUs' library that do not come back, and a process that dies in it, seen by a subscriber."""

import re
from pathlib import Path

from nodeagent.client import EventKind, Verdict
from tests.daemon.staged import is_alive
from tests.harness.subscriber import without_gap
from tests.stories.npus import CHIPS, CRASHED, POLLED, UNRESPONSIVE, Npus, eight_npus, pending_signals, tasks

STUCK = "npu5"
OTHERS = tuple(chip for chip in CHIPS if chip != STUCK)
HBM, HBM_CODE = 0x80E01801, "80E01801"
REPETITIONS = 6


async def test_story_01_a_chip_that_hangs_again_and_again_is_unknown_alone_and_leaves_nothing_behind(
    tmp_path: Path,
) -> None:
    async with eight_npus(tmp_path) as npus:
        npus.poll_interval = "100ms"
        await npus.start()
        await npus.listening()
        (worker,) = npus.workers()
        threads, begun = len(tasks(worker)), npus.heard
        for repetition in range(REPETITIONS):
            heard = npus.heard
            npus.node.hang(STUCK, uninterruptibly=repetition % 2 == 0)
            await npus.raised(STUCK, UNRESPONSIVE, after=heard)
            lost = await npus.emitted(EventKind.SOURCE_LOST, "", STUCK, after=heard)
            assert lost.verdict is Verdict.UNKNOWN
            await keeps_its_period(npus)
            npus.node.release()
            await npus.cleared(STUCK, UNRESPONSIVE, after=heard)
        await npus.observed()

        assert {event.device for event in npus.events_after(begun)} == {STUCK}
        assert len(npus.subscriber.of(EventKind.SOURCE_LOST)) == REPETITIONS
        assert npus.course(UNRESPONSIVE, STUCK) == ["raised", "cleared"] * REPETITIONS
        assert (npus.workers(), len(tasks(worker))) == ([worker], threads)
        assert await npus.of_source("restarts_total") == 0
        assert without_gap(npus.events)


async def keeps_its_period(npus: Npus) -> None:
    """The other seven are asked as often as the kernel log, which has the same period and hangs never."""
    stuck = npus.node.calls(POLLED, STUCK)
    before, clock = polls(npus), await npus.of_source("polls_total", "kmsg")
    await npus.polled(OTHERS[0], 5)
    passed = await npus.of_source("polls_total", "kmsg") - clock
    after = polls(npus)

    assert all(after[chip] - before[chip] >= passed // 2 for chip in OTHERS), (before, after, passed)
    assert npus.node.calls(POLLED, STUCK) == stuck


def polls(npus: Npus) -> dict[str, int]:
    return {chip: npus.node.calls(POLLED, chip) for chip in CHIPS}


async def test_story_01_a_restart_during_the_hang_tells_nothing_twice(tmp_path: Path) -> None:
    async with eight_npus(tmp_path) as npus:
        await npus.start()
        await npus.observed()
        npus.node.hang(STUCK, uninterruptibly=True)
        await npus.raised(STUCK, UNRESPONSIVE)
        await npus.kill()
        await npus.start()
        await npus.observed(STUCK)
        await npus.polled(OTHERS[0], 10)
        assert npus.course(UNRESPONSIVE) == [f"{STUCK} raised"]
        assert (await npus.devices())[STUCK].verdict is Verdict.UNKNOWN

        await npus.stop()
        await npus.start()
        await npus.observed(STUCK)
        npus.node.release()
        await npus.cleared(STUCK, UNRESPONSIVE)
        await npus.observed()
        assert npus.course(UNRESPONSIVE) == [f"{STUCK} raised", f"{STUCK} cleared"]
        assert without_gap(npus.events)


async def test_story_01_a_worker_wedged_in_the_kernel_is_left_alone_and_another_serves_the_seven(
    tmp_path: Path,
) -> None:
    async with eight_npus(tmp_path) as npus:
        await npus.start()
        await npus.observed()
        (wedged,) = npus.workers()
        npus.node.hang(STUCK, uninterruptibly=True, process=wedged)
        npus.node.hang(process=wedged)
        lost = await npus.emitted(EventKind.SOURCE_LOST, "", "node")
        await npus.observed(STUCK)
        for chip in OTHERS:
            await npus.cleared(chip, UNRESPONSIVE)
        asked = npus.node.calls(POLLED, STUCK)
        await npus.polled(OTHERS[0], 10)

        assert re.fullmatch(rf"no device answered within [\d.]+ s; {STUCK} hangs in the kernel", lost.why)
        assert npus.node.calls(POLLED, STUCK) == asked
        assert (await npus.devices())[STUCK].verdict is Verdict.UNKNOWN
        assert npus.course(UNRESPONSIVE, STUCK) == ["raised"]
        assert (is_alive(wedged), pending_signals(wedged)) == (True, set())
        assert await npus.of_source("abandoned_workers") == 1
        assert len(npus.workers()) == 2

        npus.node.release()
        await npus.cleared(STUCK, UNRESPONSIVE)
        await npus.observed()
        await npus.daemon.comes(lambda: len(npus.workers()) == 1 and not is_alive(wedged), "one worker")
        for chip in CHIPS:
            assert npus.course(UNRESPONSIVE, chip) == ["raised", "cleared"]
        assert without_gap(npus.events)


async def test_story_01_a_lock_of_the_whole_driver_is_the_whole_vendor_unknown_once(tmp_path: Path) -> None:
    async with eight_npus(tmp_path) as npus:
        await npus.start()
        await npus.observed()
        (wedged,) = npus.workers()
        begun = npus.heard
        npus.node.hang(STUCK, uninterruptibly=True, lock=True)
        lost = await npus.emitted(EventKind.SOURCE_LOST, "", "node", after=begun)
        await npus.observed(*CHIPS)
        await npus.daemon.comes(lambda: len(npus.workers()) == 2, "a replacement")
        metrics = await npus.metrics()

        assert re.fullmatch(r"no device answered within [\d.]+ s; npu[0-7] hangs in the kernel", lost.why)
        assert {device.verdict for device in (await npus.devices()).values() if device.name != "node"} == {
            Verdict.UNKNOWN
        }
        assert not [series for series in metrics if series.startswith("nodeagent_temperature_celsius")]
        assert (is_alive(wedged), pending_signals(wedged)) == (True, set())

        npus.node.release()
        await npus.observed()
        await npus.daemon.comes(lambda: len(npus.workers()) == 1 and not is_alive(wedged), "one worker")
        for chip in CHIPS:
            await npus.cleared(chip, UNRESPONSIVE)
            assert npus.course(UNRESPONSIVE, chip) == ["raised", "cleared"]
        whole = [event for event in npus.subscriber.of(EventKind.SOURCE_LOST) if event.device == "node"]
        assert [event.why for event in whole] == [lost.why]
        assert without_gap(npus.events)


async def test_a_crash_inside_the_library_is_told_once_and_loses_nothing(tmp_path: Path) -> None:
    async with eight_npus(tmp_path) as npus:
        await npus.start()
        await npus.observed()
        npus.node.raise_code("npu1", HBM)
        await npus.raised("npu1", HBM_CODE)
        begun = npus.heard
        dies_again = npus.node.crash(function="dcmi_init", times=-1)
        npus.node.crash("npu3", POLLED)
        crashed = await npus.raised("node", CRASHED)
        npus.node.raise_code("npu2", HBM)
        npus.node.clear_code("npu1", HBM)
        npus.node.release(dies_again)
        await npus.raised("npu2", HBM_CODE, after=begun)
        await npus.cleared("npu1", HBM_CODE, after=begun)
        await npus.cleared("node", CRASHED)
        await npus.observed()

        assert crashed.evidence["reason"] == "ended by itself: killed by SIGSEGV"
        assert npus.course(CRASHED) == ["node raised", "node cleared"]
        assert npus.course(HBM_CODE, "npu1") == ["raised", "cleared"]
        assert npus.course(HBM_CODE, "npu2") == ["raised"]
        assert await npus.of_source("restarts_total") >= 1
        assert len(npus.workers()) == 1
        assert without_gap(npus.events)
