"""The series of a chip, and which chips one reset hits. Pure.

**The series** follows from the PCI device, as in the vendor's library. The chip's name is not enough: the
library calls an A3 "Ascend910" (``dcmi_copy_npu_chip_name_v2`` of dcmi_inner_info_get.c), and so it calls the
older 910. If PCI cannot be read, an A3 is known by its board, as in MindCluster (``Is910A3Chip`` of
ascend-common/devmanager/common/utils.go), and any other chip by its name.

**The group** follows from the series (``dcmi_set_npu_device_reset_inband`` of the vendor's
dcmi_hot_reset_intf.c). A 910B with HCCS between its chips is reset with all chips of the machine; a 910B
without HCCS alone; an A3 with its card, and with the card that shares its network.

No process may run on any chip of the group. A machine has one product, so a chip that cannot be read counts
as what the others are. If its group is still unknown, all chips of the machine are one group.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from nodeagent.drivers.ascend.dcmi import ChipPlace


class ProductSeries(StrEnum):
    """What decides with which others a chip is reset."""

    ASCEND_310 = "310"
    ASCEND_910 = "910"
    ASCEND_910B = "910B"
    A3 = "A3"
    ASCEND_950 = "950"


BY_PCI_DEVICE: Final = {
    0xD100: ProductSeries.ASCEND_310,
    0xD105: ProductSeries.ASCEND_310,
    0xD500: ProductSeries.ASCEND_310,
    0xD801: ProductSeries.ASCEND_910,
    0xD802: ProductSeries.ASCEND_910B,
    0xD803: ProductSeries.A3,
    0xD806: ProductSeries.ASCEND_950,
}
"""``chip_info_table`` of the vendor's dcmi_init_basic.c."""

A3_BOARDS: Final = frozenset({0x81, 0x83, 0xB0, 0xB1, 0xB2, 0xB3, 0xB4, 0xD1, 0xD3})
"""``a3BoardIds`` of MindCluster's devmanager/common/constants.go."""

NAME_OF_TWO: Final = "Ascend910"
"""The name of a 910, and of an A3."""

_BY_NAME: Final = (
    ("910_93", ProductSeries.A3),
    ("910B", ProductSeries.ASCEND_910B),
    ("310", ProductSeries.ASCEND_310),
    ("950", ProductSeries.ASCEND_950),
)


def series_of(name: str, board: int | None, pci_device: int | None) -> ProductSeries | None:
    """None where it is unknown: "Ascend910" alone may be either. "" and None: not known."""
    if pci_device in BY_PCI_DEVICE:
        return BY_PCI_DEVICE[pci_device]
    named = next((series for part, series in _BY_NAME if part in name), None)
    if named is None and board in A3_BOARDS:
        return ProductSeries.A3
    if named is None and "910" in name and name != NAME_OF_TWO:
        return ProductSeries.ASCEND_910
    return named


NODE_GROUP: Final = "npus"
"""The reset group of chips that are only reset together with all others of the machine."""

ALONE_910B_BOARDS: Final = frozenset({0x28, 0x29, 0x33, 0x37, 0x3C})
"""Board ids of 910B without HCCS: the inference cards, and the servers with 0x33 and 0x3C (MindCluster's
``A800IA2NoneHccsBoardId``) and 0x37 (``DCMI_A800I_POD_A2_BIN4_1_PCIE_BOARD_ID`` of the vendor's
dcmi_product_judge.h).
"""

RING_910: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Sitting:
    """A chip in its place: its series, its board, and the card that shares its card's network, below zero
    where none does. None: not known.
    """

    place: ChipPlace
    series: ProductSeries | None = None
    board: int | None = None
    brother: int | None = None


def reset_groups(chips: Mapping[str, Sitting]) -> dict[str, str]:
    """The name of its group, for each device."""
    series = next((each.series for each in chips.values() if each.series is not None), None)
    boards = (each.board for each in chips.values() if each.board is not None)
    board = next(boards, None)
    modules = _modules(chips)
    groups = {
        device: _group(
            each.place,
            each.series or series,
            each.board if each.board is not None else board,
            modules.get(each.place.card, NODE_GROUP),
        )
        for device, each in chips.items()
    }
    return dict.fromkeys(groups, NODE_GROUP) if NODE_GROUP in groups.values() else groups


def _group(place: ChipPlace, series: ProductSeries | None, board: int | None, module: str) -> str:
    match series:
        case ProductSeries.A3:
            return module
        case ProductSeries.ASCEND_910B:
            return f"npu{place.physical}" if board in ALONE_910B_BOARDS else NODE_GROUP
        case ProductSeries.ASCEND_310:
            return f"card{place.card}"
        case ProductSeries.ASCEND_950:
            return f"npu{place.physical}"
        case ProductSeries.ASCEND_910:
            return f"ring{place.physical // RING_910}"
    return NODE_GROUP


def _modules(chips: Mapping[str, Sitting]) -> dict[int, str]:
    """The module of each card of an A3: both dies of the card and both of the one that shares its network, if
    any does. It takes one die that names it.
    """
    modules = {}
    for each in chips.values():
        if each.brother is None:
            continue
        cards = sorted({each.place.card, each.brother if each.brother >= 0 else each.place.card})
        modules.update(dict.fromkeys(cards, "+".join(f"card{card}" for card in cards)))
    return modules
