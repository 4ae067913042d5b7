"""Which chips there are, which part each is, and what becomes of one that is swapped, hidden or missing."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from nodeagent.core.model import SourceLost
from nodeagent.daemon.workers.worker import WorkerSpec
from nodeagent.drivers.ascend.driver import ENUMERATE_EACH, AscendDriver
from nodeagent.drivers.ascend.watched_chip import REMOVED
from nodeagent.emulator.node import EmulatedNode
from tests.daemon.staged import HANG_S
from tests.drivers.ascend.conftest import Emulate
from tests.drivers.ascend.judged import Judged, judged
from tests.drivers.ascend.recorder import Recorder
from tests.drivers.worker_specs import ascend_spec

HBM, HBM_CODE = 0x80E01801, "80E01801"


@pytest.fixture
def spec(node: EmulatedNode) -> WorkerSpec:
    return ascend_spec(node.dcmi, node.sysfs, poll_interval_s=0.05)


def kinds(stage: Judged, device: str) -> list[str]:
    return [event.kind.value for event in stage.events if event.device == device]


async def test_chips_are_seen_with_all_that_is_known_of_them(node: EmulatedNode, spec: WorkerSpec) -> None:
    async with judged(spec) as stage:
        names = [view.name for view in stage.engine.view().devices]
        assert sorted(names) == ["node", *(f"npu{number}" for number in range(8))]
        chip = stage.device("npu3")
        assert chip.id.count("-") == 4
        assert chip.attributes == {
            "board": "0x30",
            "card": "3",
            "chip": "910B2",
            "chip_version": "V1",
            "driver": "24.1.0",
            "group": "npus",
            "model": "emulated",
            "npu": "910B2",
            "pci": "0000:0d:00.0",
            "product": "Atlas 800T A2",
            "serial": "2102315000000003",
            "series": "910B",
            "slot": "3",
            "upstream": "0000:00:03.0",
        }


@pytest.mark.parametrize(
    ("description", "groups"),
    [
        ("16x910B", {"npus": 16}),
        ("8x800IA2", {f"npu{number}": 1 for number in range(8)}),
        ("16xA3", {f"card{first}+card{first + 4}": 4 for first in range(4)}),
        ("16x9000A3", {f"card{card}": 2 for card in range(8)}),
        ("4x300IDuo", {"card0": 2, "card1": 2}),
        ("4x310P", {f"card{card}": 1 for card in range(4)}),
        ("4x950", {f"npu{number}": 1 for number in range(4)}),
    ],
)
async def test_chips_that_are_reset_together_share_a_group(
    emulate: Emulate, description: str, groups: dict[str, int]
) -> None:
    node = emulate(description)
    async with judged(ascend_spec(node.dcmi, node.sysfs)) as stage:
        assert stage.faults("device_lost") == []
        found = [view.attributes.get("group", "") for view in stage.engine.view().devices if view.vendor]
        assert {group: found.count(group) for group in found} == groups


async def test_a_950_is_known_by_its_ddie(emulate: Emulate) -> None:
    node = emulate("4x950")
    async with judged(ascend_spec(node.dcmi, node.sysfs)) as stage:
        ddie = "-".join(f"{word:08x}" for word in node.chip("npu3").vdie)
        assert [ddie in view.id for view in stage.engine.view().devices if view.name == "npu3"] == [True]


@pytest.mark.parametrize("description", ["8x910B", "8x950"])
async def test_another_part_in_the_slot_replaces_the_old_one(emulate: Emulate, description: str) -> None:
    node = emulate(description)
    async with judged(ascend_spec(node.dcmi, node.sysfs)) as stage:
        node.raise_code("npu3", HBM)
        await stage.raised("npu3", HBM_CODE)
        old = stage.device("npu3").id
        node.clear_codes("npu3", deliver=False)
        node.replace_die("npu3", 77)
        await stage.until(lambda: "device_replaced" in kinds(stage, "npu3"), "device_replaced")
        assert stage.device("npu3").id != old
        assert stage.open_on("npu3") == {}
        assert [view.name for view in stage.engine.view().devices].count("npu3") == 1


async def test_what_stands_on_a_part_that_came_while_the_chip_could_not_be_asked_is_not_the_old_parts(
    node: EmulatedNode, spec: WorkerSpec
) -> None:
    async with judged(spec) as stage:
        old = stage.device("npu3").id
        node.answer(-8005, "npu3", "dcmi_get_device_errorcode_v2")
        await stage.lost("npu3")
        node.replace_die("npu3", 77)
        node.raise_code("npu3", HBM, deliver=False)
        node.release()
        raised = await stage.raised("npu3", HBM_CODE)
        assert raised.device_id == stage.device("npu3").id != old


def refuse_the_die(node: EmulatedNode) -> None:
    node.answer(-8006, "npu3", "dcmi_get_device_die_v2")


def empty_the_die(node: EmulatedNode) -> None:
    node.chip("npu3").vdie[:] = [0] * 5


@pytest.mark.parametrize("hide", [refuse_the_die, empty_the_die])
async def test_a_part_whose_id_cannot_be_read_for_a_while_stays_the_same(
    node: EmulatedNode, spec: WorkerSpec, hide: Callable[[EmulatedNode], None]
) -> None:
    die = list(node.chip("npu3").vdie)
    async with judged(spec) as stage:
        node.raise_code("npu3", HBM)
        await stage.raised("npu3", HBM_CODE)
        before, before_count = stage.device("npu3").id, len(stage.events)
        hide(node)
        await stage.until(lambda: not stage.device("npu3").observed, "unobserved")
        assert (stage.device("npu3").id, set(stage.open_on("npu3"))) == (before, {HBM_CODE})
        node.release()
        node.chip("npu3").vdie[:] = die
        await stage.until(lambda: stage.device("npu3").observed, "observed")
        assert (stage.device("npu3").id, set(stage.open_on("npu3"))) == (before, {HBM_CODE})
        assert "device_replaced" not in [event.kind.value for event in stage.events[before_count:]]


async def test_a_part_that_cannot_be_read_from_the_start_is_identified_once_it_can(
    node: EmulatedNode, spec: WorkerSpec
) -> None:
    node.answer(-8006, "npu3", "dcmi_get_device_die_v2")
    async with judged(spec) as stage:
        assert stage.device("npu3").id == "slot:0000:0d:00.0"
        node.raise_code("npu3", HBM)
        await stage.raised("npu3", HBM_CODE)
        node.release()
        await stage.until(lambda: stage.device("npu3").id.count("-") == 4, "its identity")
        assert set(stage.open_on("npu3")) == {HBM_CODE}


async def test_a_die_that_cannot_tell_of_its_brother_is_grouped_with_those_it_would_be_reset_with(
    emulate: Emulate,
) -> None:
    node = emulate("16xA3")
    node.answer(-8006, "npu3", "dcmi_get_netdev_brother_device")
    async with judged(ascend_spec(node.dcmi, node.sysfs, poll_interval_s=0.05)) as stage:
        groups = [stage.device(f"npu{number}").attributes["group"] for number in (2, 3, 10, 11)]
        assert groups == ["card1+card5"] * 4


async def test_a_chip_that_hangs_from_the_start_is_in_the_group_of_the_others(
    node: EmulatedNode, spec: WorkerSpec
) -> None:
    node.hang("npu5")
    async with judged(replace(spec, call_deadline_s=HANG_S)) as stage:
        assert stage.device("npu5").attributes["group"] == stage.device("npu4").attributes["group"] == "npus"


async def test_what_a_failed_call_left_out_of_a_part_is_read_later(
    node: EmulatedNode, spec: WorkerSpec
) -> None:
    node.answer(-8006, "npu3", "dcmi_get_card_elabel_v2")
    async with judged(spec) as stage:
        before = stage.device("npu3")
        assert "serial" not in before.attributes
        node.release()
        await stage.until(lambda: "serial" in stage.device("npu3").attributes, "its serial number")
        assert stage.device("npu3").id == before.id
        assert "device_replaced" not in kinds(stage, "npu3")


async def test_new_logic_ids_change_nothing(node: EmulatedNode, spec: WorkerSpec) -> None:
    async with judged(spec) as stage:
        before_count = len(stage.events)
        listed = node.calls("dcmi_get_device_logic_id")
        node.renumber([7, 6, 5, 4, 3, 2, 1, 0])
        # The list under way may have the old numbers; the next one is over when a third begins.
        await stage.until(lambda: node.calls("dcmi_get_device_logic_id") > listed + 2 * 8, "a new list")
        node.raise_code("npu1", HBM)
        await stage.raised("npu1", HBM_CODE)
        assert {(event.kind.value, event.device) for event in stage.events[before_count:]} == {
            ("raised", "npu1")
        }


@pytest.mark.parametrize("description", ["8x910B", "8x950"])
async def test_a_chip_that_the_driver_removes_is_lost(emulate: Emulate, description: str) -> None:
    node = emulate(description)
    async with judged(ascend_spec(node.dcmi, node.sysfs)) as stage:
        node.take_out("npu3")
        lost = await stage.signal("device_lost", "0000:0d:00.0", "occur")
        assert lost.evidence["reason"] == REMOVED
        assert stage.device("npu3").attributes["pci"] == "0000:0d:00.0"
        assert "device_lost" in stage.open_on("npu3")
        node.return_("npu3")
        await stage.cleared("npu3", "device_lost")


def test_a_trouble_is_told_once_while_it_lasts_and_anew_when_it_comes_again(
    node: EmulatedNode, capfd: pytest.CaptureFixture[str]
) -> None:
    driver = AscendDriver(
        library=str(node.dcmi), sysfs=node.sysfs, procfs=Path("/proc"), skip=frozenset(), emit=Recorder()
    )
    driver.open()
    counts = []
    for _ in range(3):
        node.answer(-8006, None, "dcmi_get_device_num_in_card")
        for _ in range(2 * ENUMERATE_EACH):
            driver.devices()
        counts.append(capfd.readouterr().err.count("cannot be listed"))
        node.release()
        for _ in range(ENUMERATE_EACH):
            driver.devices()
    assert counts == [8, 8, 8]


async def test_a_library_without_any_chip_misses_every_one_that_pci_lists(
    node: EmulatedNode, spec: WorkerSpec
) -> None:
    for device in node.names():
        node.take_out(device)
    async with judged(spec) as stage:
        await stage.until(lambda: len(stage.faults("device_lost")) == 8, "eight missing chips")


async def test_a_library_that_is_absent_where_pci_lists_npus_is_a_lost_source(
    node: EmulatedNode, spec: WorkerSpec
) -> None:
    hidden = node.dcmi.rename(node.dcmi.with_name("hidden"))
    async with judged(spec, ready=False) as stage:
        lost = await stage.until(
            lambda: next((one for one in stage.inputs if isinstance(one, SourceLost)), None), "SourceLost"
        )
        assert lost.reason == f"PCI lists 8 NPUs, but {node.dcmi}: there is no such library"
        hidden.rename(node.dcmi)
        await stage.back()


async def test_a_chip_that_hangs_at_the_start_holds_nobody_up(node: EmulatedNode, spec: WorkerSpec) -> None:
    node.hang("npu5")
    async with judged(replace(spec, call_deadline_s=HANG_S)) as stage:
        assert [view.name for view in stage.engine.view().devices if not view.observed] == ["npu5"]
        assert stage.device("npu5").id == "slot:npu5"
        node.release()
        await stage.back("npu5")


async def test_the_die_of_a_300i_duo_that_is_left_keeps_its_name(emulate: Emulate, tmp_path: Path) -> None:
    node = emulate("4x300IDuo")
    node.drop("npu0")
    async with judged(ascend_spec(node.dcmi, tmp_path / "sys", poll_interval_s=0.05)) as stage:
        node.raise_code("npu1", 0x80A18008)
        raised = await stage.raised("npu1", "80A18008")
        assert (raised.verdict.value, raised.evidence["event_name"]) == (
            "ISOLATE",
            "deviceid=1, fault 80A18008",
        )
        assert [view.name for view in stage.engine.view().devices if view.source] == ["npu1", "npu2", "npu3"]


async def test_a_node_of_which_no_chip_answers_at_the_start_is_seen_when_one_does(
    node: EmulatedNode, spec: WorkerSpec
) -> None:
    for name in node.names():
        node.drop(name)
    async with judged(spec, ready=False) as stage:
        lost = await stage.until(
            lambda: next((one for one in stage.inputs if isinstance(one, SourceLost)), None), "SourceLost"
        )
        assert lost.reason == "dcmi_init: device not ready (NOT_READY, -8012)"
        node.return_("npu3")
        await stage.back()
        await stage.polled("npu3", 1)
        await stage.until(lambda: len(stage.faults("device_lost")) == 7, "seven chips that are missing")
