"""Which chips a reset would hit: by product, and where a chip cannot tell what it is, or its brother."""

from dataclasses import replace

import pytest

from nodeagent.drivers.ascend.dcmi import Place
from nodeagent.drivers.ascend.grouping import Sitting, reset_groups

INFERENCE_CARD, TRAINING_BOARD = 0x28, 0x30


def node(chip: str, count: int, dies: int = 1, board: int = TRAINING_BOARD) -> dict[str, Sitting]:
    """All of it known; the cards of an A3 are brothers in pairs."""
    return {
        f"npu{number}": Sitting(
            place=Place(address=(number,), card=number // dies, logic=number, physical=number),
            chip=chip,
            board=board,
            brother=(number // dies) ^ 1 if "910_93" in chip else None,
        )
        for number in range(count)
    }


def unread(sitting: Sitting) -> Sitting:
    return Sitting(place=sitting.place)


@pytest.mark.parametrize(
    ("chips", "groups"),
    [
        (node("910B2", 4), ["npus"] * 4),
        (node("910B3", 2, board=INFERENCE_CARD), ["npu0", "npu1"]),
        (node("Ascend910_9392", 8, dies=2), ["card0+card1"] * 4 + ["card2+card3"] * 4),
        (node("310P3", 4, dies=2), ["card0", "card0", "card1", "card1"]),
        (node("950", 2), ["npu0", "npu1"]),
        (node("910A", 8), ["ring0"] * 4 + ["ring1"] * 4),
        (node("something new", 2), ["npus"] * 2),
    ],
    ids=["910B", "910B inference", "A3", "310P", "950", "910", "unknown"],
)
def test_chips_are_grouped_by_their_product(chips: dict[str, Sitting], groups: list[str]) -> None:
    assert list(reset_groups(chips).values()) == groups


@pytest.mark.parametrize(
    "chips",
    [node("910B2", 8), node("Ascend910_9392", 8, dies=2), node("310P3", 4, dies=2), node("950", 2)],
    ids=["910B", "A3", "310P", "950"],
)
def test_a_chip_that_was_never_read_is_in_the_group_of_those_it_would_be_reset_with(
    chips: dict[str, Sitting],
) -> None:
    known = reset_groups(chips)
    assert reset_groups({**chips, "npu1": unread(chips["npu1"])}) == known


@pytest.mark.parametrize("blind", ["npu3", "npu2", "npu0"])
def test_one_die_that_tells_of_the_brother_speaks_for_both_cards(blind: str) -> None:
    chips = node("Ascend910_9392", 4, dies=2)
    silent = {name: replace(each, brother=None) for name, each in chips.items()}
    assert set(reset_groups({**silent, blind: chips[blind]}).values()) == {"card0+card1"}


def test_where_nobody_tells_of_a_brother_all_chips_are_one_group() -> None:
    chips = node("Ascend910_9392", 8, dies=2)
    silent = {name: replace(chips[name], brother=None) for name in ("npu4", "npu5", "npu6", "npu7")}
    assert set(reset_groups({**chips, **silent}).values()) == {"npus"}


def test_a_single_module_has_no_brother_and_is_reset_as_a_whole() -> None:
    chips = {name: replace(each, brother=-1) for name, each in node("Ascend910_9392", 8, dies=2).items()}
    assert set(reset_groups(chips).values()) == {"npus"}


def test_chips_of_which_nothing_is_known_are_one_group() -> None:
    chips = {name: unread(each) for name, each in node("950", 4).items()}
    assert set(reset_groups(chips).values()) == {"npus"}
