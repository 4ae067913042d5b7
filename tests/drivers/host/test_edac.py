"""Memory modules as EDAC's counters show them."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from nodeagent.drivers.api import CallFailed
from nodeagent.drivers.host.edac import DESCRIBE, Memory
from nodeagent.wire import Signal
from tests.daemon.staged import put
from tests.drivers.host.node_tree import NodeTree

REPOSITORY = Path(__file__).parents[3]
TREE: Mapping[str, Mapping[str, str]] = tomllib.loads(
    (REPOSITORY / "tests/fixtures/hardware/linux-6.1-edac.toml").read_text()
)


def polled(memory: Memory, device: str) -> list[tuple[str, str, int]]:
    """Code, assertion and count of what a poll says has happened."""
    return [(each.code, each.assertion.value, each.count) for each in signals(memory, device)]


def signals(memory: Memory, device: str) -> list[Signal]:
    return list(memory.watched(device).poll()[1])


def active(memory: Memory, device: str) -> list[str]:
    return [each.code for each in memory.watched(device).poll()[0].active or ()]


def names(memory: Memory) -> list[str]:
    return [device.device for device in memory.devices()]


def test_a_module_is_named_by_its_label_and_described_by_its_place(node: NodeTree) -> None:
    node.module("mc0/dimm0", "P1-DIMMA1")

    (device,) = Memory(node.sysfs).devices()

    assert (device.device, device.kind, device.attributes) == (
        "dimm:P1-DIMMA1",
        "host",
        {
            "label": "P1-DIMMA1",
            "place": "mc0/dimm0",
            "controller": "Skylake Socket#0 IMC#0",
            "location": "channel 1 slot 0",
            "size_mb": "32768",
            "memory_type": "Registered-DDR4",
        },
    )


def test_modules_without_a_label_of_their_own_are_named_by_their_place(node: NodeTree) -> None:
    node.module("mc0/dimm0")
    node.module("mc0/rank1", "CPU 0 / A1")
    node.module("mc1/dimm10", "same")
    node.module("mc1/dimm2", "same")

    assert names(Memory(node.sysfs)) == [
        "dimm:mc0/dimm0",
        "dimm:CPU_0___A1",
        "dimm:same@mc1/dimm2",
        "dimm:same@mc1/dimm10",
    ]


def test_an_error_that_was_not_corrected_names_label_and_location(node: NodeTree) -> None:
    node.module("mc0/dimm0", "A1")
    node.module("mc0/dimm1", "A2")
    memory = Memory(node.sysfs)
    assert names(memory) == ["dimm:A1", "dimm:A2"]
    assert polled(memory, "dimm:A1") == polled(memory, "dimm:A2") == []

    node.module("mc0/dimm1", uncorrected=2)

    assert polled(memory, "dimm:A1") == []
    (signal,) = signals(memory, "dimm:A2")
    assert (signal.code, signal.assertion, signal.count) == ("DIMM_UE", "occur", 2)
    assert (signal.evidence["label"], signal.evidence["location"]) == ("A2", "channel 1 slot 0")
    assert polled(memory, "dimm:A2") == []
    assert (active(memory, "dimm:A1"), active(memory, "dimm:A2")) == ([], ["DIMM_UE"])


def test_what_was_not_corrected_before_the_first_poll_still_stands(node: NodeTree) -> None:
    node.module("mc0/dimm0", "A1", corrected=7, uncorrected=1)
    memory = Memory(node.sysfs)
    memory.devices()

    reading, happened = memory.watched("dimm:A1").poll()
    (standing,) = reading.active or ()
    assert (standing.code, happened) == ("DIMM_UE", [])
    assert (standing.evidence["label"], standing.evidence["errors"]) == ("A1", "1")


def test_corrected_errors_count_from_the_first_poll_on(node: NodeTree) -> None:
    node.module("mc0/dimm0", "A1", corrected=7)
    memory = Memory(node.sysfs)
    memory.devices()
    reading, happened = memory.watched("dimm:A1").poll()
    assert (reading.readings, happened) == ({"edac_corrected_total": 7, "edac_uncorrected_total": 0}, [])

    node.module("mc0/dimm0", corrected=12)

    assert polled(memory, "dimm:A1") == [("DIMM_CE", "once", 5)]


def test_counters_that_begin_anew_hide_no_error(node: NodeTree) -> None:
    node.module("mc0/dimm0", "A1", corrected=40, uncorrected=3)
    memory = Memory(node.sysfs)
    memory.devices()
    polled(memory, "dimm:A1")

    node.module("mc0/dimm0", corrected=2, uncorrected=1)
    assert polled(memory, "dimm:A1") == [("DIMM_UE", "occur", 1), ("DIMM_CE", "once", 2)]
    node.module("mc0/dimm0", corrected=0, uncorrected=0)
    assert polled(memory, "dimm:A1") == []
    assert active(memory, "dimm:A1") == []


def test_labels_that_are_given_after_the_boot_are_taken_and_nothing_is_counted_twice(node: NodeTree) -> None:
    folder = node.module("mc0/dimm0", "mc#0memory#0", corrected=5)
    memory = Memory(node.sysfs)
    assert names(memory) == ["dimm:mc#0memory#0"]
    assert polled(memory, "dimm:mc#0memory#0") == []

    put(folder / "dimm_label", "P1-DIMMA1\n")

    listed = [names(memory) for _ in range(DESCRIBE)]
    assert listed[-1] == ["dimm:P1-DIMMA1"]
    node.module("mc0/dimm0", corrected=6)
    assert polled(memory, "dimm:P1-DIMMA1") == [("DIMM_CE", "once", 1)]


def test_a_kernel_that_knows_no_modules_has_rows(node: NodeTree) -> None:
    folder = node.sysfs / "devices/system/edac/mc/mc0/csrow2"
    folder.mkdir(parents=True)
    for name, text in (
        ("ch0_dimm_label", "A1"), ("ch1_dimm_label", "B1"), ("size_mb", "16384"), ("ce_count", "0"),
        ("mem_type", "Registered-DDR3"), ("ue_count", "1"),
    ):  # fmt: skip
        put(folder / name, text + "\n")
    memory = Memory(node.sysfs)

    assert names(memory) == ["dimm:A1+B1"]
    assert active(memory, "dimm:A1+B1") == ["DIMM_UE"]


def test_errors_of_no_known_module_are_the_controllers(node: NodeTree) -> None:
    controller = node.module("mc0/dimm0", "A1").parent
    memory = Memory(node.sysfs)
    assert names(memory) == ["dimm:A1"]

    put(controller / "ue_noinfo_count", "1\n")

    assert names(memory) == ["dimm:mc0", "dimm:A1"]
    assert active(memory, "dimm:mc0") == ["DIMM_UE"]
    assert memory.devices()[0].attributes["location"] == "the controller did not report which module"


def test_the_first_errors_of_no_known_module_count(node: NodeTree) -> None:
    """The controller is listed only from then on, and had none at the look before."""
    controller = node.module("mc0/dimm0", "A1").parent
    memory = Memory(node.sysfs)
    assert names(memory) == ["dimm:A1"]

    put(controller / "ce_noinfo_count", "3\n")

    assert names(memory) == ["dimm:mc0", "dimm:A1"]
    assert polled(memory, "dimm:mc0") == [("DIMM_CE", "once", 3)]
    assert polled(memory, "dimm:mc0") == []


def test_errors_of_no_known_module_from_before_the_first_look_do_not_count(node: NodeTree) -> None:
    controller = node.module("mc0/dimm0", "A1").parent
    put(controller / "ce_noinfo_count", "3\n")
    memory = Memory(node.sysfs)

    assert names(memory) == ["dimm:mc0", "dimm:A1"]
    assert polled(memory, "dimm:mc0") == []


def test_a_real_kernels_tree_names_the_right_module(node: NodeTree) -> None:
    _write(node, TREE["before"])
    memory = Memory(node.sysfs)
    modules = [
        f"dimm:CPU_SrcID#0_MC#0_Chan#{channel}_DIMM#{slot}" for channel, slot in ((0, 0), (0, 1), (1, 0))
    ]
    assert names(memory) == modules
    assert [polled(memory, module) for module in modules] == [[], [], []]

    _write(node, TREE["after"])

    assert names(memory) == ["dimm:mc0", *modules]
    assert polled(memory, "dimm:mc0") == [("DIMM_UE", "occur", 1), ("DIMM_CE", "once", 3)]
    assert [polled(memory, module) for module in modules] == [
        [],
        [("DIMM_UE", "occur", 1)],
        [("DIMM_CE", "once", 1)],
    ]
    assert memory.devices()[3].attributes == {
        "label": "CPU_SrcID#0_MC#0_Chan#1_DIMM#0",
        "place": "mc0/dimm2",
        "controller": "Skylake Socket#0 IMC#0",
        "location": "channel 1 slot 0",
        "size_mb": "32768",
        "memory_type": "Registered-DDR4",
    }


def _write(node: NodeTree, files: Mapping[str, str]) -> None:
    for place, text in files.items():
        file = node.sysfs / "devices/system/edac/mc" / place
        file.parent.mkdir(parents=True, exist_ok=True)
        put(file, f"{text}\n")


def test_a_module_that_goes_is_listed_no_longer(node: NodeTree) -> None:
    controller = node.module("mc0/dimm0", "A1").parent
    memory = Memory(node.sysfs)
    assert names(memory) == ["dimm:A1"]
    controller.rename(controller.with_name("gone"))

    with pytest.raises(CallFailed, match="dimm_ce_count"):
        polled(memory, "dimm:A1")
    assert names(memory) == []
    with pytest.raises(CallFailed, match="lists no 'dimm:A1' any more"):
        memory.watched("dimm:A1")


def test_what_is_no_number_is_named_with_its_file(node: NodeTree) -> None:
    folder = node.module("mc0/dimm0", "A1")
    memory = Memory(node.sysfs)
    memory.devices()
    put(folder / "dimm_ce_count", "many\n")

    with pytest.raises(CallFailed, match="dimm_ce_count: 'many' where a whole number is needed"):
        polled(memory, "dimm:A1")


def test_a_node_without_edac_has_no_module(node: NodeTree) -> None:
    memory = Memory(node.sysfs)

    assert (memory.is_here(), names(memory)) == (False, [])
