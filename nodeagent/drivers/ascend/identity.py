"""Which part sits in a place: its die id, and what else the library knows of it that does not change.

Read by the chip's own thread, for any of these calls may hang. What cannot be read is left out; only the
die id makes the identity, since a serial number stands for a card of one, two or four chips.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from nodeagent.drivers.api import CallFailed
from nodeagent.drivers.ascend.abi import BoardInfo, ChipInfo, DieId, ElabelInfo, PcieInfo, Structure, text
from nodeagent.drivers.ascend.dcmi import Chip, Place
from nodeagent.drivers.pci import HUAWEI, PROCESSING_ACCELERATOR, PciFunction, functions

VDIE: Final = 1
"""``dcmi_die_type``: the die that MindCluster knows a chip by; only some chips have an NDIE too."""

NODE_GROUP: Final = "npus"
"""The reset group of chips that are only reset together with all others of the machine."""

ALONE_910B_BOARDS: Final = frozenset({0x28, 0x29, 0x33, 0x3C})
"""Board ids of the 910B inference cards."""

RING_910: Final = 4

_EMPTY_DIES: Final = ((0,) * 5, (0xFFFFFFFF,) * 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """``die`` "" : it could not be read. ``attributes`` as ``DeviceSeen`` has them."""

    die: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)


def read_die(chip: Chip) -> str:
    """The five words of the die id, "" where they say nothing. Raises ``CallFailed``."""
    words = tuple(chip.structure("die", DieId, VDIE).soc_die)
    return "" if words in _EMPTY_DIES else "-".join(f"{word:08x}" for word in words)


def read(chip: Chip, place: Place, die: str) -> Identity:
    """The part whose die id was read, with all else that can be read of it."""
    attributes: dict[str, str] = {"card": str(place.card)}
    info = _chip_info(chip)
    if info is not None:
        attributes["chip"] = text(info.chip_name)
        attributes["chip_version"] = text(info.chip_ver)
    board = _structure(chip, "board_info", BoardInfo)
    if board is not None:
        attributes["board"] = f"{board.board_id:#x}"
        attributes["slot"] = str(board.slot_id)
    if (address := _pci_address(chip)) != "":
        attributes["pci"] = address
    elabel = _structure(chip, "elabel", ElabelInfo)
    if elabel is not None:
        attributes["product"] = text(elabel.product_name)
        attributes["model"] = text(elabel.model)
        attributes["serial"] = text(elabel.serial_number)
    attributes["group"] = reset_group(
        chip, place, attributes.get("chip", ""), board.board_id if board else -1
    )
    return Identity(die=die, attributes={name: value for name, value in attributes.items() if value})


def reset_group(chip: Chip, place: Place, chip_name: str, board: int) -> str:
    """The name that all chips have which must be reset together; by product, as MindCluster does it."""
    if "310" in chip_name:
        return f"card{place.card}"
    if "910_93" in chip_name:
        return _module_of_a3(chip, place)
    if "910B" in chip_name:
        return f"npu{place.physical}" if board in ALONE_910B_BOARDS else NODE_GROUP
    if "950" in chip_name:
        return f"npu{place.physical}"
    return f"ring{place.physical // RING_910}" if "910" in chip_name else NODE_GROUP


def expected(sysfs: Path) -> tuple[PciFunction, ...]:
    """The NPUs that PCI lists, without virtual ones. Raises ``OSError``."""
    found = functions(sysfs, HUAWEI, (PROCESSING_ACCELERATOR,))
    return tuple(function for function in found if not function.virtual)


def _module_of_a3(chip: Chip, place: Place) -> str:
    """Both dies of the card and both of the one that shares its network; the node where that is not known."""
    try:
        brother = chip.signed("brother")
    except CallFailed:
        return NODE_GROUP
    if brother < 0:
        return NODE_GROUP
    first, second = sorted((place.card, brother))
    return f"card{first}+card{second}"


def _chip_info(chip: Chip) -> ChipInfo | None:
    """By the newer call, else by the older one, whose structure lacks the last field."""
    found = _structure(chip, "chip_info", ChipInfo)
    return found if found is not None else _structure(chip, "chip_info_older", ChipInfo)


def _pci_address(chip: Chip) -> str:
    info = _structure(chip, "pcie_info", PcieInfo)
    if info is None or info.bdf_busid > 0xFF or info.bdf_deviceid > 0x1F or info.bdf_funcid > 7:
        return ""
    return f"{info.domain & 0xFFFF:04x}:{info.bdf_busid:02x}:{info.bdf_deviceid:02x}.{info.bdf_funcid:x}"


def _structure(chip: Chip, name: str, form: type[Structure]) -> Structure | None:
    """None where the call fails: what it would have told is left out."""
    try:
        return chip.structure(name, form)
    except CallFailed:
        return None
