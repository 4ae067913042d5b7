"""What the tests of the Ascend drivers share: emulated nodes, and PCI trees beside them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from nodeagent.emulator.node import EmulatedNode

Emulate = Callable[[str], EmulatedNode]


@pytest.fixture
def emulate(tmp_path: Path) -> Iterator[Emulate]:
    """Makes the node of a description; whatever hangs in it is let go at the end."""
    with ExitStack() as nodes:
        yield lambda description: nodes.enter_context(
            EmulatedNode.create(tmp_path / f"node-{description}", description)
        )


@pytest.fixture
def node(emulate: Emulate) -> EmulatedNode:
    return emulate("8x910B")


def pci_tree(sysfs: Path, node: EmulatedNode) -> None:
    """What the kernel shows of the node's chips: each behind a bridge of its own."""
    listed = sysfs / "bus/pci/devices"
    listed.mkdir(parents=True)
    for number, device in enumerate(node.names()):
        chip = node.chip(device)
        address = f"{chip.pci_domain:04x}:{chip.pci_bus:02x}:{chip.pci_device:02x}.{chip.pci_function:x}"
        folder = sysfs / f"devices/pci0000:00/0000:00:{number:02x}.0/{address}"
        folder.mkdir(parents=True)
        for name, value in (("vendor", "0x19e5"), ("device", "0xd802"), ("class", "0x120000")):
            (folder / name).write_text(f"{value}\n")
        (listed / address).symlink_to(folder)
