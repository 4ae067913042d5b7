"""NPU faults of every class, and what the library says wrong: from the driver to a subscriber."""

import json
from pathlib import Path

from nodeagent.client import Device, Event, EventKind, Verdict
from nodeagent.emulator.state import NO_LIE
from tests.harness.subscriber import without_gap
from tests.stories.npus import CHIPS, Npus, eight_npus

OCCUR, ONCE, RECOVER = 1, 2, 0
HBM, HBM_CODE = 0x80E01801, "80E01801"
DROPPED_CODE = "40F84E00"
QUERY = "dcmi_get_device_errorcode_v2"
FULL = 128
AICORE = 2


async def test_story_08_whatever_way_a_fault_is_told_or_lost_each_chip_has_it_as_long_as_it_is_there(
    tmp_path: Path,
) -> None:
    async with eight_npus(tmp_path) as npus:
        node = npus.node
        npus.daemon.agent = ('once_hold = "2s"',)
        node.raise_code("npu7", HBM, deliver=False)
        await npus.start()
        await npus.listening()
        await npus.raised("npu7", HBM_CODE)

        for chip in ("npu0", "npu4", "npu5", "npu6"):
            node.raise_code(chip, HBM)
        node.send_event("npu1", HBM, ONCE)
        node.raise_code("npu2", HBM, events=3)
        node.send_event("npu3", HBM, RECOVER)
        node.raise_code("npu3", HBM)
        for chip in CHIPS:
            await npus.raised(chip, HBM_CODE)
        await npus.daemon.comes(lambda: occurred(npus, "npu2", 3), "three occurrences")

        # npu0 recovers as it should; of npu4 nobody hears it; npu5's list is full, npu6's cannot be asked.
        node.answer(-8006, "npu6", QUERY)
        await npus.emitted(EventKind.SOURCE_LOST, "", "npu6")
        fill(npus, "npu5")
        node.clear_code("npu0", HBM)
        for chip in ("npu4", "npu5", "npu6"):
            node.clear_code(chip, HBM, deliver=False)
        await npus.cleared("npu0", HBM_CODE)
        await npus.cleared("npu4", HBM_CODE)
        await npus.polled("npu5", 15)
        await npus.polled("npu6", 5)
        for chip in ("npu2", "npu3", "npu5", "npu6", "npu7"):
            assert npus.course(HBM_CODE, chip) == ["raised"]
            assert HBM_CODE in await npus.open_on(chip)
        assert (await npus.devices())["npu6"].verdict is Verdict.ISOLATE

        node.release()
        node.clear_code("npu5", 0x80000001, deliver=False)
        for chip in ("npu5", "npu6"):
            await npus.cleared(chip, HBM_CODE)
        for chip in ("npu2", "npu3", "npu7"):
            node.clear_code(chip, HBM)
            await npus.cleared(chip, HBM_CODE)
        await npus.cleared("npu1", HBM_CODE)
        for chip in CHIPS:
            assert npus.course(HBM_CODE, chip) == ["raised", "cleared"]
        assert without_gap(npus.events)


async def test_what_makes_no_sense_is_refused_and_counted_and_hides_nothing_else(tmp_path: Path) -> None:
    async with eight_npus(tmp_path) as npus:
        node = npus.node
        node.set("npu3", "process_count_lie", -1)
        await npus.start()
        await npus.listening()
        for event_id in (0, 0xFFFFFFFF):
            node.send_event("npu0", event_id, OCCUR)
        node.send_event("npu0", HBM, 7)
        node.send_event("npu0", HBM, OCCUR, device_id=0xFFFF)
        await npus.daemon.comes(lambda: refused(npus, 4), "four refused events")
        begun = npus.heard

        node.set_node("unterminated", 1)
        node.set("npu1", "code_count_lie", -1)
        node.set("npu2", "code_count_lie", 10_000)
        node.set("npu4", "health_lie", 77)
        node.set("npu5", "utilization_percent", 255, AICORE)
        await npus.observed("npu1", "npu2")
        node.raise_code("npu6", HBM)
        raised = await npus.raised("npu6", HBM_CODE)
        await npus.polled("npu5", 3)
        await npus.daemon.comes(lambda: refused(npus, 4 + 5 * 3), "what each poll of five chips refuses")
        metrics, lost = await npus.metrics(), npus.subscriber.of(EventKind.SOURCE_LOST)

        assert {event.device: event.why for event in lost} == {
            "npu1": "the driver answers: the number of error codes is given as -1; it must be 0 to 128",
            "npu2": "the driver answers: the number of error codes is given as 10000; it must be 0 to 128",
        }
        assert {event.device for event in npus.events_after(begun)} == {"npu1", "npu2", "npu6"}
        assert raised.evidence["event_name"] == "X" * 256
        assert (await npus.devices())["npu3"].holders is None
        assert 'nodeagent_health{device="npu4"}' not in metrics
        assert 'nodeagent_utilization_ratio{device="npu5",part="aicore"}' not in metrics
        assert metrics['nodeagent_utilization_ratio{device="npu6",part="aicore"}'] == 0

        for chip in ("npu1", "npu2"):
            node.set(chip, "code_count_lie", NO_LIE)
        await npus.observed()
        node.set_node("card_count_lie", 10_000)
        failures = await npus.of_source("poll_failures_total")
        await npus.daemon.comes(lambda: failed(npus, failures + 3), "polls of the source that failed")
        await npus.observed()
        assert (await npus.of_source("restarts_total"), await npus.of_source("garbled_total")) == (0, 0)


async def failed(npus: Npus, times: float) -> bool:
    return await npus.of_source("poll_failures_total") >= times


async def refused(npus: Npus, times: int) -> bool:
    return await npus.of_source("refused_values_total") >= times


async def occurred(npus: Npus, device: str, times: int) -> bool:
    (condition,) = [each for each in (await npus.snapshot()).conditions if each.device == device]
    return condition.count == times


def fill(npus: Npus, device: str) -> None:
    """With the fault itself, and then without it: as many codes as the list can hold."""
    for number in range(FULL):
        npus.node.raise_code(device, 0x80000001 + number, deliver=False)


async def test_story_09_another_die_in_the_slot_is_another_device_and_nothing_else_is(tmp_path: Path) -> None:
    async with eight_npus(tmp_path) as npus:
        node = npus.node
        await npus.start()
        await npus.listening()
        for chip in ("npu1", "npu3"):
            node.raise_code(chip, HBM)
            await npus.raised(chip, HBM_CODE)
        before = await npus.devices()

        node.renumber([7, 6, 5, 4, 3, 2, 1, 0])
        for chip in ("npu1", "npu5"):
            node.answer(-8006, chip, "dcmi_get_device_die_v2")
        await swap_the_part(npus, "npu3")
        replaced = await npus.emitted(EventKind.DEVICE_REPLACED, "", "npu3")
        await npus.observed("npu1", "npu5")
        node.raise_code("npu4", HBM)
        await npus.raised("npu4", HBM_CODE)
        meanwhile = await npus.devices()
        node.release()
        await npus.observed()
        after = await npus.devices()

        old = before["npu3"].id
        (closed,) = [
            event for event in npus.events if event.kind is EventKind.CLEARED and event.code == HBM_CODE
        ]
        assert (closed.device_id, closed.why) == (old, "device_replaced")
        assert (replaced.device_id, replaced.evidence["was"]) == (after["npu3"].id, old)
        assert (after["npu3"].verdict, await npus.open_on("npu3")) == (Verdict.ALLOW, set())
        assert (meanwhile["npu1"].verdict, meanwhile["npu5"].verdict) == (Verdict.ISOLATE, Verdict.UNKNOWN)
        assert ids(after, but="npu3") == ids(meanwhile, but="npu3") == ids(before, but="npu3")
        assert await npus.open_on("npu1") == {HBM_CODE}
        raised = await raise_again(npus, "npu3")
        assert raised.condition_id == f"{replaced.device_id}/{HBM_CODE}#1"
        first_read = "verdict_changed"
        assert await history(npus, old) == [
            *("device_seen", first_read, "raised", "raised", "cleared", "cleared")
        ]
        assert await history(npus, replaced.device_id) == ["device_replaced", first_read, "raised"]
        assert without_gap(npus.events)


async def swap_the_part(npus: Npus, device: str) -> None:
    """It goes, and another one comes, which knows nothing of the faults of the first."""
    npus.node.drop(device)
    await npus.raised(device, DROPPED_CODE)
    npus.node.clear_codes(device, deliver=False)
    npus.node.replace_die(device, 77)
    npus.node.return_(device)


async def raise_again(npus: Npus, device: str) -> Event:
    heard = npus.heard
    npus.node.raise_code(device, HBM)
    return await npus.raised(device, HBM_CODE, after=heard)


async def history(npus: Npus, device_id: str) -> list[str]:
    """The kinds of the events that the store has of this part, but for what is planned to be done to it."""
    _, out = await npus.daemon.command("events", "--device", device_id, "--socket", npus.daemon.socket)
    kinds = [json.loads(line)["kind"] for line in out.splitlines()]
    return [kind for kind in kinds if not kind.startswith("action_")]


def ids(devices: dict[str, Device], but: str) -> dict[str, str]:
    return {name: device.id for name, device in devices.items() if name != but}
