"""What a described GPU is, field by field."""

from collections.abc import Mapping
from typing import Any

from nodeagent.emulator.layout import LIMITS
from nodeagent.emulator.state import State


def fill_gpus(state: State, first: int, count: int, product: Mapping[str, Any]) -> None:
    """Describes ``count`` GPUs of a product from chip ``first`` on."""
    for number in range(count):
        chip = state.chips[first + number]
        chip.kind, chip.present, chip.ready = LIMITS["KIND_GPU"], 1, 1
        chip.pci_bus = 0x80 + 4 * number
        chip.pci_vendor, chip.pci_product = 0x10DE, product["pci_product"]
        chip.serial = f"GPU{number:09d}".encode()
