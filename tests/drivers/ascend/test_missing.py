"""NPUs that PCI lists and the library does not: which they are, and how they are found once they started."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from nodeagent.core.model import SourceLost
from nodeagent.drivers.api import Unavailable
from nodeagent.drivers.ascend import opening
from nodeagent.drivers.ascend.driver import AscendDriver
from nodeagent.drivers.ascend.opening import listed_by_pci, missing_chips
from nodeagent.drivers.shared.pci import HUAWEI, Bus, PciFunction
from nodeagent.emulator.node import EmulatedNode
from tests.drivers.ascend.conftest import Emulate
from tests.drivers.ascend.judged import judged
from tests.drivers.ascend.recorder import Recorder
from tests.drivers.worker_specs import ascend_spec

A, B, C = "0000:01:00.0", "0000:02:00.0", "0000:03:00.0"
LISTED = [
    PciFunction(address=address, vendor=0x19E5, device=0xD802, base_class=0x1200) for address in (A, B, C)
]
INIT = "dcmi_init"


def lost(*addresses: str) -> dict[str, str]:
    return {each.device: each.reason for each in missing_chips(LISTED, addresses)}


def test_a_slot_that_no_chip_names_is_missing() -> None:
    assert lost(A, B, C) == {}
    assert lost(A, C) == {B: "PCI lists 3 NPUs, the library 2, and not this one"}
    assert [*lost()] == [A, B, C]


def test_a_chip_that_cannot_be_asked_where_it_sits_may_be_the_missing_one() -> None:
    assert lost(A, B, "") == {}
    reported = (
        "PCI lists 3 NPUs, the library 2, and not this one, unless it is one of 1 that cannot be asked where"
    )
    assert {address: reason.startswith(reported) for address, reason in lost(A, "").items()} == {
        B: True,
        C: True,
    }


def bind(node: EmulatedNode, address: str, driver: str) -> None:
    """As an operator gives an NPU to a virtual machine, or takes it back."""
    link = node.sysfs / "bus/pci/devices" / address / "driver"
    link.unlink(missing_ok=True)
    if driver:
        link.symlink_to(node.sysfs / "bus/pci/drivers" / driver)


def listed(node: EmulatedNode, before: Sequence[PciFunction] = ()) -> list[str]:
    return [function.address for function in listed_by_pci(Bus(node.sysfs, HUAWEI), before)]


def test_an_npu_that_a_virtual_machine_has_is_not_expected_until_it_is_given_back(emulate: Emulate) -> None:
    node = emulate("3x910B")
    given = listed(node)[1]
    bind(node, given, "vfio-pci")
    assert given not in listed(node)
    bind(node, given, "devdrv_device_driver")
    assert given in listed(node)


def test_an_npu_that_no_driver_has_is_expected(emulate: Emulate) -> None:
    node = emulate("3x910B")
    bind(node, listed(node)[1], "")
    assert len(listed(node)) == 3


def test_an_npu_that_is_gone_from_pci_stays_expected_and_one_that_is_given_away_does_not(
    emulate: Emulate,
) -> None:
    node = emulate("3x910B")
    before = listed_by_pci(Bus(node.sysfs, HUAWEI))
    gone, given, here = (function.address for function in before)
    (node.sysfs / "bus/pci/devices" / gone).unlink()
    bind(node, given, "vfio-pci")
    assert listed(node, before) == [gone, here]


async def test_an_npu_is_found_that_a_virtual_machine_gave_back(emulate: Emulate) -> None:
    node = emulate("4x910B")
    (given,) = [address for address in listed(node) if ":0d:" in address]
    bind(node, given, "vfio-pci")
    node.drop("npu3")
    async with judged(ascend_spec(node.dcmi, node.sysfs, poll_interval_s=0.02)) as stage:
        assert stage.faults("device_lost") == []
        bind(node, given, "devdrv_device_driver")
        node.return_("npu3")
        await stage.polled("npu3", 1)


def refused(node: EmulatedNode, sysfs: Path) -> Unavailable:
    """Why the driver of a library that does not start is not opened."""
    node.answer(-8010, None, INIT)
    driver = AscendDriver(
        library=str(node.dcmi), sysfs=sysfs, procfs=Path("/proc"), skip=frozenset(), emit=Recorder()
    )
    with pytest.raises(Unavailable) as refusal:
        driver.open()
    return refusal.value


def test_a_library_that_does_not_start_where_there_are_no_npus_is_nothing_to_miss(
    node: EmulatedNode, tmp_path: Path
) -> None:
    assert refused(node, tmp_path).absent


def test_a_library_that_does_not_start_where_pci_lists_npus_is_missed(node: EmulatedNode) -> None:
    refusal = refused(node, node.sysfs)
    assert (refusal.absent, refusal.missing, refusal.errno) == (False, (), 8010)


def test_a_library_that_does_not_start_where_its_driver_has_found_npus_is_missed(
    node: EmulatedNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = tmp_path / "davinci_manager"
    found.touch()
    monkeypatch.setattr(opening, "DEVICE_NODE", found)
    assert not refused(node, tmp_path / "sys").absent


@pytest.mark.parametrize(("description", "init"), [("8x910B", INIT), ("4x950", "dcmiv2_init")])
async def test_a_chip_that_was_starting_when_the_library_was_opened_is_found_and_the_others_never_lost(
    emulate: Emulate, description: str, init: str
) -> None:
    node = emulate(description)
    node.drop("npu3")
    async with judged(ascend_spec(node.dcmi, node.sysfs, poll_interval_s=0.05)) as stage:
        slot = stage.faults("device_lost")[0][0]
        assert "npu3" not in [view.name for view in stage.engine.view().devices]
        node.return_("npu3")
        await stage.until(lambda: (slot, "recover") in stage.faults("device_lost"), "the chip found")
        await stage.polled("npu3", 1)
        assert stage.device("npu3").observed
        assert [given for given in stage.inputs if isinstance(given, SourceLost)] == []
        assert node.calls(init) >= 2


@pytest.mark.parametrize(("description", "lost"), [("16xA3", 2), ("4x300IDuo", 1)])
async def test_both_dies_of_a_card_are_found_once_both_have_started(
    emulate: Emulate, description: str, lost: int
) -> None:
    node = emulate(description)
    node.drop("npu1")
    async with judged(ascend_spec(node.dcmi, node.sysfs, poll_interval_s=0.05)) as stage:
        assert {view.name for view in stage.engine.view().devices} >= {"npu2", "npu3"}
        assert len(stage.faults("device_lost")) == lost
        node.return_("npu1")
        for device in ("npu0", "npu1"):
            await stage.polled(device, 1)


async def test_a_chip_that_the_driver_finds_later_is_found_and_the_others_never_lost(
    node: EmulatedNode,
) -> None:
    node.take_out("npu3")
    async with judged(ascend_spec(node.dcmi, node.sysfs, poll_interval_s=0.05)) as stage:
        slot = stage.faults("device_lost")[0][0]
        node.return_("npu3")
        await stage.until(lambda: (slot, "recover") in stage.faults("device_lost"), "the chip found")
        await stage.polled("npu3", 1)
        assert [given for given in stage.inputs if isinstance(given, SourceLost)] == []


async def test_chips_are_looked_for_though_the_library_is_slow_to_initialise(node: EmulatedNode) -> None:
    node.take_out("npu3")
    node.set("npu0", "mcu_silent_ms", 3500)
    async with judged(ascend_spec(node.dcmi, node.sysfs, poll_interval_s=0.05)) as stage:
        node.return_("npu3")
        await stage.polled("npu3", 1)
        assert stage.faults("driver_unresponsive") == []


async def test_a_chip_that_has_dropped_is_not_lost_from_sight_for_one_that_is_missing(
    node: EmulatedNode,
) -> None:
    node.take_out("npu3")
    async with judged(ascend_spec(node.dcmi, node.sysfs, poll_interval_s=0.05)) as stage:
        pid = stage.health.pid
        node.drop("npu5")
        node.return_("npu3")
        await stage.raised("npu5", "40F84E00")
        looked = node.calls(INIT)
        await stage.until(lambda: node.calls(INIT) > looked + 1, "two searches")
        assert stage.health.pid == pid
        node.return_("npu5")
        await stage.polled("npu3", 1)
        assert "device_lost" not in stage.open_on("npu5")
