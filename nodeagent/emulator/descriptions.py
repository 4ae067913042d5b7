"""Makes a node from a description such as ``8x910B+8xH100``: its state file and its PCI tree.

The products are rows of ``products.toml``. The PCI tree is a folder such as ``/sys``, with a bridge above
each card. It is written once: a chip that drops stays in it, because PCI still lists a chip that the library
has lost.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from nodeagent.emulator.bmc import HUAWEI, SUPERMICRO, Controller
from nodeagent.emulator.layout import LIMITS
from nodeagent.emulator.npus import fill_npus
from nodeagent.emulator.nvml import fill_gpus
from nodeagent.emulator.state import EmulatorState

PRODUCTS: Final[Mapping[str, Mapping[str, Any]]] = tomllib.loads(
    (Path(__file__).parent / "products.toml").read_text()
)
"""Product -> its row."""
FILLERS: Final[Mapping[str, Callable[[EmulatorState, int, int, Mapping[str, Any]], None]]] = {
    "npu": fill_npus,
    "gpu": fill_gpus,
}
"""``kind`` of a product -> what describes its chips in a state file."""

_PART: Final = re.compile(r"(\d+)x(\w+)", re.ASCII)


class DescriptionError(ValueError):
    """No such node can be described; the text names what is wrong."""


def parse_description(text: str) -> list[tuple[int, str]]:
    """``8x910B+8xH100`` -> ``[(8, "910B"), (8, "H100")]``. Raises ``DescriptionError``."""
    parts: list[tuple[int, str]] = []
    for words in text.split("+"):
        part = _PART.fullmatch(words.strip())
        if part is None or part[2] not in PRODUCTS or int(part[1]) == 0:
            raise DescriptionError(
                f"{words!r}: such as 8x910B is right, a count and a product out of {', '.join(PRODUCTS)}"
            )
        parts.append((int(part[1]), part[2]))
    kinds = [PRODUCTS[product]["kind"] for _, product in parts]
    if len(set(kinds)) < len(kinds):
        raise DescriptionError(f"{text!r}: one product of NPUs and one of GPUs at most")
    if sum(count for count, _ in parts) > LIMITS["CHIPS"]:
        raise DescriptionError(f"{text!r}: {LIMITS['CHIPS']} chips at most")
    return parts


def libraries_for(text: str) -> list[str]:
    """The libraries that a described node has. Raises ``DescriptionError``."""
    of_chips = [name for _, product in parse_description(text) for name in PRODUCTS[product]["libraries"]]
    return [*of_chips, "libbmc.so"]


def describe(state: EmulatorState, text: str) -> None:
    """Fills a new state file. Raises ``DescriptionError``."""
    first = 0
    for count, product in parse_description(text):
        row = PRODUCTS[product]
        try:
            FILLERS[row["kind"]](state, first, count, row)
        except ValueError as error:
            raise DescriptionError(f"{count}x{product}: {error}") from None
        first += count
    state.node.chip_count = first
    has_npus = any(state.chips[index].kind == LIMITS["KIND_NPU"] for index in range(first))
    Controller(state).describe(HUAWEI if has_npus else SUPERMICRO)


_CLASS: Final[Mapping[int, int]] = {LIMITS["KIND_NPU"]: 0x120000, LIMITS["KIND_GPU"]: 0x030200}
_DRIVER: Final[Mapping[int, str]] = {LIMITS["KIND_NPU"]: "devdrv_device_driver", LIMITS["KIND_GPU"]: "nvidia"}


def address_of(chip: Any) -> str:
    """As the kernel writes it, such as ``0000:3b:00.0``."""
    return f"{chip.pci_domain:04x}:{chip.pci_bus:02x}:{chip.pci_device:02x}.{chip.pci_function:x}"


def write_pci_tree(state: EmulatorState, root: Path) -> None:
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
