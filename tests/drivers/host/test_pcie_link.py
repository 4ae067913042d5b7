"""PCI Express links of NPUs and network cards against what card and slot can do."""

from pathlib import Path

import pytest

from nodeagent.drivers.host.check import Hardware
from nodeagent.drivers.host.pcie import IN_A_ROW, PcieLinks, is_virtual
from tests.daemon.staged import put
from tests.drivers.host.node_tree import CARD, NPU, PORT_OF_CARD, NodeTree

GEN4 = "16.0 GT/s PCIe"
GEN5 = "32.0 GT/s PCIe"


@pytest.fixture
def check(node: NodeTree) -> PcieLinks:
    return PcieLinks(node.sysfs, Hardware(node.sysfs), lambda: False)


def judged(check: PcieLinks) -> dict[tuple[str, str], dict[str, str]]:
    """What is active once it was seen often enough."""
    looks = [check.look().active for _ in range(IN_A_ROW)]
    assert all(not look for look in looks[:-1])
    return {finding: dict(evidence) for finding, evidence in looks[-1].items()}


def test_links_at_their_best_are_in_order(node: NodeTree, check: PcieLinks) -> None:
    node.card()
    node.npu()

    assert judged(check) == {}


def test_a_card_with_too_few_lanes_and_too_slow_is_named(node: NodeTree, check: PcieLinks) -> None:
    node.link(node.card(), width="8", speed="8.0 GT/s PCIe")

    assert judged(check) == {
        (CARD, "NIC_PCIE_WIDTH"): {"port": PORT_OF_CARD, "width": "8 of 16 lanes"},
        (CARD, "NIC_PCIE_SPEED"): {"port": PORT_OF_CARD, "speed": "8 of 32 GT/s"},
    }


def test_a_card_is_not_blamed_for_what_its_slot_cannot_do(node: NodeTree, check: PcieLinks) -> None:
    card = node.card()
    node.link(card, width="8", speed=GEN4)
    node.link(card.parent, width="8", speed=GEN4, most=("8", GEN4))

    assert judged(check) == {}


def test_a_slot_is_not_blamed_for_what_its_card_cannot_do(node: NodeTree, check: PcieLinks) -> None:
    node.link(node.card(), width="8", speed=GEN4, most=("8", GEN4))

    assert judged(check) == {}


def test_an_npu_is_judged_by_its_lanes_alone_for_it_may_be_idle(node: NodeTree, check: PcieLinks) -> None:
    node.link(node.npu(), width="4", speed="2.5 GT/s PCIe")

    assert list(judged(check)) == [(NPU, "NPU_PCIE_WIDTH")]


def test_a_gpu_is_left_to_its_driver(node: NodeTree, check: PcieLinks) -> None:
    node.link(node.gpu(), width="4", speed="2.5 GT/s PCIe")

    assert (check.is_here(), judged(check)) == (False, {})


def test_a_card_that_sleeps_is_not_judged(node: NodeTree, check: PcieLinks) -> None:
    card = node.card()
    node.link(card, width="1", speed="2.5 GT/s PCIe")
    (card / "power").mkdir()
    put(card / "power/runtime_status", "suspended\n")
    assert judged(check) == {}

    put(card / "power/runtime_status", "active\n")
    assert len(judged(check)) == 2


@pytest.mark.parametrize(
    ("width", "speed"), [("0", GEN5), ("255", GEN5), ("", ""), ("16", "Unknown"), ("x16", "fast")]
)
def test_what_is_not_known_is_no_downgrade(node: NodeTree, check: PcieLinks, width: str, speed: str) -> None:
    node.link(node.card(), width=width, speed=speed)

    assert judged(check) == {}


def test_a_link_that_is_trained_anew_for_a_moment_is_in_order(node: NodeTree, check: PcieLinks) -> None:
    card = node.card()
    node.link(card, width="8")
    for _ in range(IN_A_ROW - 1):
        assert check.look().active == {}
    node.link(card)
    assert check.look().active == {}

    node.link(card, width="8")
    assert check.look().active == {}


def test_ports_of_one_card_are_one_link(node: NodeTree, check: PcieLinks) -> None:
    card = node.card()
    second = node._plug(f"pci0000:5d/{PORT_OF_CARD}/0000:5e:00.1", 0x15B3, 0x1021, 0x020700)
    for folder in (card, second):
        node.link(folder, width="8")

    assert [device for device, _ in judged(check)] == [CARD]


def test_a_virtual_machine_sees_no_real_slot(node: NodeTree) -> None:
    node.link(node.card(), width="8")
    check = PcieLinks(node.sysfs, Hardware(node.sysfs), lambda: True)

    assert (check.is_here(), judged(check)) == (False, {})


@pytest.mark.parametrize(
    ("flags", "vendor", "expected"),
    [
        ("fpu vme hypervisor sse", "", True),
        ("fpu vme", "Dell Inc.", False),
        ("", "QEMU", True),
        ("", "Huawei", False),
    ],
)
def test_what_says_that_a_machine_is_none(tmp_path: Path, flags: str, vendor: str, expected: bool) -> None:
    put(tmp_path / "cpuinfo", f"processor\t: 0\nflags\t\t: {flags}\n\nprocessor\t: 1\n")
    (tmp_path / "class/dmi/id").mkdir(parents=True)
    put(tmp_path / "class/dmi/id/sys_vendor", f"{vendor}\n")

    assert is_virtual(tmp_path, tmp_path) is expected
