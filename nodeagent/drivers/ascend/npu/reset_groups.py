"""Which chips one reset of the vendor's library hits, by product. Pure.

``dcmi_set_npu_device_reset_inband`` of the vendor's dcmi_hot_reset_intf.c decides: a 910B with HCCS between
its chips is reset with all of the machine, one without alone, an A3 by cards: its own, and the one that
shares its network where there is one.

Nothing may run on any of them when one of them is reset. So a chip that cannot say enough of itself is taken
for what the others are, for a machine has one product; and where that leaves open whose group it is in, all
chips of the machine are one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from nodeagent.drivers.ascend.library.dcmi import Place
from nodeagent.drivers.ascend.npu.product import Series

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

    place: Place
    series: Series | None = None
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


def _group(place: Place, series: Series | None, board: int | None, module: str) -> str:
    match series:
        case Series.A3:
            return module
        case Series.ASCEND_910B:
            return f"npu{place.physical}" if board in ALONE_910B_BOARDS else NODE_GROUP
        case Series.ASCEND_310:
            return f"card{place.card}"
        case Series.ASCEND_950:
            return f"npu{place.physical}"
        case Series.ASCEND_910:
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
