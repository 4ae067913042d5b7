"""What PCI would list of an emulated node: a tree such as ``/sys``, with a bridge above each card.

It is written once; a chip that drops or is taken out stays in it, as PCI goes on listing what a library lost.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from nodeagent.emulator.shared.layout import LIMITS
from nodeagent.emulator.shared.state import State

_CLASS: Final[Mapping[int, int]] = {LIMITS["KIND_NPU"]: 0x120000, LIMITS["KIND_GPU"]: 0x030200}
_DRIVER: Final[Mapping[int, str]] = {LIMITS["KIND_NPU"]: "devdrv_device_driver", LIMITS["KIND_GPU"]: "nvidia"}


def address_of(chip: Any) -> str:
    """As the kernel writes it, such as ``0000:3b:00.0``."""
    return f"{chip.pci_domain:04x}:{chip.pci_bus:02x}:{chip.pci_device:02x}.{chip.pci_function:x}"


def write_pci_tree(state: State, root: Path) -> None:
    """Writes ``root/bus/pci/devices`` and what it links to. Raises ``OSError``."""
    listed = root / "bus/pci/devices"
    listed.mkdir(parents=True, exist_ok=True)
    for index in range(state.node.chip_count):
        chip = state.chips[index]
        if not chip.pci_product:
            continue
        address = address_of(chip)
        host = f"devices/pci{chip.pci_domain:04x}:00/{chip.pci_domain:04x}:00:{index % 32:02x}.0"
        folder = root / host / address
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "vendor").write_text(f"0x{chip.pci_vendor:04x}\n")
        (folder / "device").write_text(f"0x{chip.pci_product:04x}\n")
        (folder / "class").write_text(f"0x{_CLASS[chip.kind]:06x}\n")
        driver = root / "bus/pci/drivers" / _DRIVER[chip.kind]
        driver.mkdir(parents=True, exist_ok=True)
        for link, target in ((folder / "driver", driver), (listed / address, folder)):
            link.unlink(missing_ok=True)
            link.symlink_to(target.resolve())
