"""What becomes of NPU faults of every class, from the library to the core's events."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nodeagent.core.model import ActiveSet, Level, Signal, SourceLost
from nodeagent.daemon.workers.worker import WorkerSpec
from nodeagent.emulator.node import EmulatedNode
from tests.drivers.ascend.conftest import Emulate
from tests.drivers.ascend.judged import judged, shipped
from tests.drivers.worker_specs import ascend_spec

OCCUR, ONCE, RECOVER = 1, 2, 0
HBM, HBM_CODE = 0x80E01801, "80E01801"
LINK, LINK_CODE = 0x81078603, "81078603"
SEPARATE, SEPARATE_CODE = 0x80818C05, "80818C05"
DROPPED_CODE = "40F84E00"
SUBSCRIBE = "dcmi_subscribe_fault_event"


@pytest.fixture
def spec(node: EmulatedNode, tmp_path: Path) -> WorkerSpec:
    return ascend_spec(node.dcmi, tmp_path / "sys", poll_interval_s=0.05)


@pytest.fixture
def by_events(spec: WorkerSpec) -> WorkerSpec:
    """After the first poll all is reported by events alone: no poll comes before one, or between two."""
    return replace(spec, poll_interval_s=3600.0)


def signals_of(inputs: list[Any], device: str, code: str) -> list[Signal]:
    return [one for one in inputs if isinstance(one, Signal) and (one.device, one.code) == (device, code)]


async def test_a_fault_is_raised_by_its_event_and_cleared_by_its_recovery(
    node: EmulatedNode, by_events: WorkerSpec
) -> None:
    async with judged(by_events) as stage:
        node.raise_code("npu3", HBM, severity=3, name="HBM uncorrectable")
        raised = await stage.raised("npu3", HBM_CODE)
        assert (raised.level, raised.condition_level) == (Level.RESTART_BUSINESS, Level.RESTART_BUSINESS)
        assert raised.evidence["event_name"] == "deviceid=3, HBM uncorrectable"
        assert raised.evidence["node_type"] == str(0x70)
        node.clear_code("npu3", HBM)
        await stage.cleared("npu3", HBM_CODE)
        assert stage.kinds_of("npu3", HBM_CODE) == ["raised", "cleared"]
        assert [one.severity for one in signals_of(stage.inputs, "npu3", HBM_CODE)] == [3, 3]


async def test_a_one_off_event_is_raised_though_no_poll_lists_it(
    node: EmulatedNode, spec: WorkerSpec
) -> None:
    async with judged(spec) as stage:
        node.send_event("npu3", HBM, ONCE)
        await stage.raised("npu3", HBM_CODE)
        await stage.polled("npu3", 3)
        assert stage.kinds_of("npu3", HBM_CODE) == ["raised"]
        assert [one.assertion.value for one in signals_of(stage.inputs, "npu3", HBM_CODE)] == ["once"]


async def test_repeated_events_are_one_condition_that_counts_them(
    node: EmulatedNode, by_events: WorkerSpec
) -> None:
    async with judged(by_events) as stage:
        node.raise_code("npu3", HBM, events=3)
        await stage.until(lambda: len(signals_of(stage.inputs, "npu3", HBM_CODE)) == 3, "three events")
        assert stage.kinds_of("npu3", HBM_CODE)[0] == "raised"
        assert stage.kinds_of("npu3", HBM_CODE).count("raised") == 1
        assert stage.open_on("npu3")[HBM_CODE].presence.count == 3


async def test_a_recovery_before_its_fault_clears_nothing(node: EmulatedNode, spec: WorkerSpec) -> None:
    async with judged(spec) as stage:
        node.send_event("npu3", HBM, RECOVER)
        node.raise_code("npu3", HBM)
        await stage.raised("npu3", HBM_CODE)
        await stage.polled("npu3", 3)
        assert stage.kinds_of("npu3", HBM_CODE) == ["raised"]


async def test_a_fault_whose_recovery_was_lost_is_cleared_by_a_poll(
    node: EmulatedNode, spec: WorkerSpec
) -> None:
    async with judged(spec) as stage:
        node.raise_code("npu3", HBM)
        await stage.until(lambda: signals_of(stage.inputs, "npu3", HBM_CODE), "its event")
        node.clear_code("npu3", HBM, deliver=False)
        await stage.cleared("npu3", HBM_CODE)
        assert len(signals_of(stage.inputs, "npu3", HBM_CODE)) == 1


async def test_a_fault_whose_event_was_lost_is_raised_by_a_poll(node: EmulatedNode, spec: WorkerSpec) -> None:
    async with judged(spec) as stage:
        node.raise_code("npu3", HBM, deliver=False)
        await stage.raised("npu3", HBM_CODE)
        assert signals_of(stage.inputs, "npu3", HBM_CODE) == []


async def test_faults_that_stand_at_the_start_are_raised(node: EmulatedNode, spec: WorkerSpec) -> None:
    node.raise_code("npu3", HBM, deliver=False)
    node.raise_code("npu5", LINK, deliver=False)
    async with judged(spec) as stage:
        await stage.raised("npu3", HBM_CODE)
        await stage.raised("npu5", LINK_CODE)
        assert stage.open_on("npu4") == {}


async def test_a_full_list_closes_nothing(node: EmulatedNode, spec: WorkerSpec) -> None:
    async with judged(spec) as stage:
        node.raise_code("npu3", HBM)
        await stage.until(lambda: signals_of(stage.inputs, "npu3", HBM_CODE), "its event")
        for number in range(128):
            node.raise_code("npu3", 0x80000001 + number, deliver=False)
        node.clear_code("npu3", HBM, deliver=False)
        await stage.until(lambda: incomplete(stage.inputs, 128), "a full list without the fault")
        assert HBM_CODE in stage.open_on("npu3")
        node.clear_code("npu3", 0x80000001, deliver=False)
        await stage.cleared("npu3", HBM_CODE)


def incomplete(inputs: list[Any], count: int) -> bool:
    """Whether the last list of npu3 has so many codes, not the fault's among them, and may lack some."""
    last = [one for one in inputs if isinstance(one, ActiveSet) and one.device == "npu3"][-1]
    codes = [each.code for each in last.codes]
    return not last.complete and len(codes) == count and HBM_CODE not in codes


async def test_a_query_that_fails_closes_nothing_and_makes_the_chip_unobserved(
    node: EmulatedNode, spec: WorkerSpec
) -> None:
    async with judged(spec) as stage:
        node.raise_code("npu3", HBM)
        await stage.raised("npu3", HBM_CODE)
        node.answer(-8006, "npu3", "dcmi_get_device_errorcode_v2")
        lost = await stage.lost("npu3")
        assert lost.reason == ("the driver answers: dcmi_get_device_errorcode_v2: timeout (TIME_OUT, -8006)")
        node.clear_code("npu3", HBM, deliver=False)
        assert HBM_CODE in stage.open_on("npu3")
        assert not stage.device("npu3").observed
        node.release()
        await stage.cleared("npu3", HBM_CODE)


async def test_a_nonsensical_list_closes_nothing(node: EmulatedNode, spec: WorkerSpec) -> None:
    async with judged(spec) as stage:
        node.raise_code("npu3", HBM)
        await stage.raised("npu3", HBM_CODE)
        node.set("npu3", "code_count_lie", -1)
        lost = await stage.lost("npu3")
        assert "the number of error codes is given as -1" in lost.reason
        assert HBM_CODE in stage.open_on("npu3")
        await stage.until(lambda: stage.health.readings["*"].get("refused_values_total", 0) > 0, "the count")


@pytest.mark.parametrize("nonsense", [0, 0xFFFFFFFF])
async def test_a_list_with_a_code_that_is_none_closes_nothing(
    node: EmulatedNode, spec: WorkerSpec, nonsense: int
) -> None:
    async with judged(spec) as stage:
        node.raise_code("npu3", HBM)
        await stage.raised("npu3", HBM_CODE)
        node.raise_code("npu3", nonsense, deliver=False)
        node.clear_code("npu3", HBM, deliver=False)
        await stage.until(lambda: incomplete(stage.inputs, 0), "a list without the fault")
        assert HBM_CODE in stage.open_on("npu3")
        node.clear_code("npu3", nonsense, deliver=False)
        await stage.cleared("npu3", HBM_CODE)


async def test_a_finished_reset_has_the_part_looked_at_anew(node: EmulatedNode, spec: WorkerSpec) -> None:
    async with judged(spec) as stage:
        node.replace_die("npu3", 77)
        node.send_event("npu3", 0x8C2FA009, OCCUR)
        await stage.raised("npu3", "8C2FA009")
        await stage.until(lambda: "device_replaced" in [e.kind.value for e in stage.events], "a new part")
        await stage.cleared("npu3", "8C2FA009")


async def test_a_reset_chip_is_away_until_it_has_started(node: EmulatedNode, spec: WorkerSpec) -> None:
    async with judged(spec) as stage:
        node.raise_code("npu3", HBM)
        await stage.raised("npu3", HBM_CODE)
        node.drop("npu3")
        await stage.raised("npu3", DROPPED_CODE)
        node.clear_codes("npu3", deliver=False)
        node.return_("npu3")
        node.send_event("npu3", 0x8C2FA009, ONCE)
        await stage.cleared("npu3", DROPPED_CODE)
        await stage.until(lambda: set(stage.open_on("npu3")) == {"8C2FA009"}, "nothing of before")


async def test_events_come_once_the_library_takes_a_subscription(
    node: EmulatedNode, spec: WorkerSpec
) -> None:
    node.answer(-8020, None, SUBSCRIBE)
    async with judged(spec) as stage:
        node.raise_code("npu3", HBM)
        await stage.raised("npu3", HBM_CODE)
        assert signals_of(stage.inputs, "npu3", HBM_CODE) == []
        node.release()
        await stage.until(lambda: stage.health.readings["*"].get("subscribed") == 1, "a subscription")
        node.send_event("npu3", SEPARATE, ONCE)
        await stage.raised("npu3", SEPARATE_CODE)
        assert [given for given in stage.inputs if isinstance(given, SourceLost)] == []


async def test_a_library_that_has_no_events_is_asked_for_them_once(
    node: EmulatedNode, spec: WorkerSpec
) -> None:
    node.answer(-8255, None, SUBSCRIBE)
    async with judged(spec) as stage:
        await stage.polled("npu3", 30)
        assert (node.calls(SUBSCRIBE), node.calls("dcmi_init")) == (1, 1)


async def test_a_chip_that_drops_has_a_fault_of_its_own_while_it_is_away(
    node: EmulatedNode, spec: WorkerSpec
) -> None:
    async with judged(spec) as stage:
        node.raise_code("npu3", HBM)
        await stage.raised("npu3", HBM_CODE)
        node.drop("npu3")
        raised = await stage.raised("npu3", DROPPED_CODE)
        assert raised.condition_level is Level.RESTART_NPU
        node.clear_code("npu3", HBM, deliver=False)
        assert set(stage.open_on("npu3")) == {HBM_CODE, DROPPED_CODE}
        node.return_("npu3")
        await stage.cleared("npu3", DROPPED_CODE)
        await stage.cleared("npu3", HBM_CODE)


async def test_a_chip_whose_driver_is_busy_for_one_call_has_not_dropped(
    node: EmulatedNode, spec: WorkerSpec
) -> None:
    async with judged(spec) as stage:
        for function in ("dcmi_get_device_power_info", "dcmi_get_device_resource_info"):
            node.answer(-8012, "npu3", function)
        asked = node.calls("dcmi_get_device_resource_info", "npu3")
        await stage.until(lambda: node.calls("dcmi_get_device_resource_info", "npu3") > asked + 3, "polls")
        await stage.polled("npu3", 1)
        assert stage.kinds_of("npu3", DROPPED_CODE) == []
        assert stage.device("npu3").observed


async def test_events_that_make_no_sense_are_refused_and_counted(
    node: EmulatedNode, spec: WorkerSpec
) -> None:
    async with judged(spec) as stage:
        node.send_event("npu3", 0, OCCUR)
        node.send_event("npu3", 0xFFFFFFFF, OCCUR)
        node.send_event("npu3", HBM, 7)
        node.raise_code("npu3", SEPARATE)
        await stage.raised("npu3", SEPARATE_CODE)
        await stage.until(lambda: stage.health.readings["*"].get("events_total") == 4, "four events")
        assert stage.health.readings["*"]["refused_values_total"] == 3
        assert set(stage.open_on("npu3")) == {SEPARATE_CODE}
        assert stage.health.garbled == 0


async def test_a_950_says_how_severe_a_standing_fault_of_no_table_is(
    emulate: Emulate, tmp_path: Path
) -> None:
    node = emulate("4x950")
    node.raise_code("npu1", 0x80D10C55, severity=1, deliver=False)
    node.raise_code("npu2", 0x80D10C66, severity=3, deliver=False)
    async with judged(ascend_spec(node.dcmi, tmp_path / "sys")) as stage:
        mild = await stage.raised("npu1", "80D10C55")
        grave = await stage.raised("npu2", "80D10C66")
        assert (mild.condition_level, grave.condition_level) == (Level.NOT_HANDLE, Level.SEPARATE_NPU)


def every_code() -> list[tuple[str, Level]]:
    """The chip table's codes that a library can send; first the one that others seen before would worsen."""
    made_by_us = {"110000002", "110001024", "200001002"}
    rows = [row for row in shipped().rows.values() if Path(row.file.partition(":")[0]).name == "ascend.toml"]
    codes = [(row.code, row.level) for row in rows if row.code not in made_by_us]
    return sorted(codes, key=lambda code: code[0] != LINK_CODE)


async def test_every_code_of_the_chip_table_is_raised_with_its_level_and_cleared(
    node: EmulatedNode, spec: WorkerSpec
) -> None:
    codes = every_code()
    assert len(codes) == 802 - 3
    chip_of = {code: f"npu{number % 8}" for number, (code, _) in enumerate(codes)}
    async with judged(spec) as stage:
        for code, _ in codes:
            node.raise_code(chip_of[code], int(code, 16))
            if code == LINK_CODE:
                await stage.raised(chip_of[code], code)
        await stage.until(lambda: len(raised_levels(stage.events)) == len(codes), "every code raised")
        assert raised_levels(stage.events) == {(chip_of[code], code): level for code, level in codes}
        for device in node.names():
            node.clear_codes(device)
        await stage.until(lambda: not stage.engine.view().conditions, "every code cleared")
        assert all(not stage.open_on(device) for device in node.names())
        assert stage.health.readings["*"]["refused_values_total"] == 0


def raised_levels(events: list[Any]) -> dict[tuple[str, str], Level]:
    return {(each.device, each.code): each.condition_level for each in events if each.kind.value == "raised"}
