"""Which chips are reset together, by product as MindCluster has it. Pure.

Nothing may run on any of them when one of them is reset. So a chip that cannot tell enough of itself is taken
for what the others are, for a machine has one product; and where that leaves open whose group it is in, all
chips of the machine are one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from nodeagent.drivers.ascend.dcmi import Place
from nodeagent.drivers.ascend.identity import A3

NODE_GROUP: Final = "npus"
"""The reset group of chips that are only reset together with all others of the machine."""

ALONE_910B_BOARDS: Final = frozenset({0x28, 0x29, 0x33, 0x3C})
"""Board ids of the 910B inference cards."""

RING_910: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Sitting:
    """A chip in its place: its name, its board, and the card that shares its card's network, below zero where
    none does. "" and None: not known.
    """

    place: Place
    chip: str = ""
    board: int | None = None
    brother: int | None = None


def reset_groups(chips: Mapping[str, Sitting]) -> dict[str, str]:
    """The name of its group, for each device."""
    name = next((each.chip for each in chips.values() if each.chip), "")
    boards = (each.board for each in chips.values() if each.board is not None)
    board = next(boards, None)
    modules = _modules(chips)
    groups = {
        device: _group(
            each.place,
            each.chip or name,
            each.board if each.board is not None else board,
            modules.get(each.place.card, NODE_GROUP),
        )
        for device, each in chips.items()
    }
    return dict.fromkeys(groups, NODE_GROUP) if NODE_GROUP in groups.values() else groups


def _group(place: Place, chip: str, board: int | None, module: str) -> str:
    if "310" in chip:
        return f"card{place.card}"
    if A3 in chip:
        return module
    if "910B" in chip:
        return f"npu{place.physical}" if board in ALONE_910B_BOARDS else NODE_GROUP
    if "950" in chip:
        return f"npu{place.physical}"
    return f"ring{place.physical // RING_910}" if "910" in chip else NODE_GROUP


def _modules(chips: Mapping[str, Sitting]) -> dict[int, str]:
    """By card, of an A3: both dies of the card and both of the one that shares its network. It takes one die
    that tells of it.
    """
    modules = {}
    for each in chips.values():
        if each.brother is not None and each.brother >= 0:
            first, second = sorted((each.place.card, each.brother))
            modules[first] = modules[second] = f"card{first}+card{second}"
    return modules
