"""Which chips a reset would hit: by product, and where a chip cannot say what it is, or its brother."""

from dataclasses import replace

import pytest

from nodeagent.drivers.ascend.dcmi import ChipPlace
from nodeagent.drivers.ascend.reset_groups import ProductSeries, Sitting, reset_groups, series_of

INFERENCE_CARD, NO_HCCS, TRAINING_BOARD = 0x28, 0x37, 0x30
NONE = -1


def node(
    series: ProductSeries | None, count: int, dies: int = 1, board: int = TRAINING_BOARD
) -> dict[str, Sitting]:
    """All of it known; the cards of an A3 are brothers of those four further."""
    return {
        f"npu{number}": Sitting(
            place=ChipPlace(address=(number,), card=number // dies, logic=number, physical=number),
            series=series,
            board=board,
            brother=(number // dies + 4) % 8 if series is ProductSeries.A3 else None,
        )
        for number in range(count)
    }


def a3() -> dict[str, Sitting]:
    return node(ProductSeries.A3, 16, dies=2)


def unread(sitting: Sitting) -> Sitting:
    return Sitting(place=sitting.place)


@pytest.mark.parametrize(
    ("chips", "groups"),
    [
        (node(ProductSeries.ASCEND_910B, 4), ["npus"] * 4),
        (node(ProductSeries.ASCEND_910B, 2, board=INFERENCE_CARD), ["npu0", "npu1"]),
        (node(ProductSeries.ASCEND_910B, 2, board=NO_HCCS), ["npu0", "npu1"]),
        (a3(), [f"card{number // 2 % 4}+card{number // 2 % 4 + 4}" for number in range(16)]),
        (node(ProductSeries.ASCEND_310, 4, dies=2), ["card0", "card0", "card1", "card1"]),
        (node(ProductSeries.ASCEND_950, 2), ["npu0", "npu1"]),
        (node(ProductSeries.ASCEND_910, 8), ["ring0"] * 4 + ["ring1"] * 4),
        (node(None, 2), ["npus"] * 2),
    ],
    ids=["910B", "910B inference", "910B without HCCS", "A3", "310P", "950", "910", "unknown"],
)
def test_chips_are_grouped_by_their_product(chips: dict[str, Sitting], groups: list[str]) -> None:
    assert list(reset_groups(chips).values()) == groups


@pytest.mark.parametrize(
    "chips",
    [
        node(ProductSeries.ASCEND_910B, 8),
        a3(),
        node(ProductSeries.ASCEND_310, 4, dies=2),
        node(ProductSeries.ASCEND_950, 2),
    ],
    ids=["910B", "A3", "310P", "950"],
)
def test_a_chip_that_was_never_read_is_in_the_group_of_those_it_would_be_reset_with(
    chips: dict[str, Sitting],
) -> None:
    known = reset_groups(chips)
    assert reset_groups({**chips, "npu1": unread(chips["npu1"])}) == known


@pytest.mark.parametrize("blind", ["npu0", "npu1", "npu8", "npu9"])
def test_one_die_that_tells_of_the_brother_speaks_for_both_cards(blind: str) -> None:
    chips = a3()
    module = ("npu0", "npu1", "npu8", "npu9")
    silent = {name: replace(chips[name], brother=None) for name in module if name != blind}
    groups = reset_groups({**chips, **silent})
    assert {groups[name] for name in module} == {"card0+card4"}


def test_where_nobody_tells_of_a_brother_all_chips_are_one_group() -> None:
    chips = a3()
    silent = {name: replace(chips[name], brother=None) for name in ("npu4", "npu5", "npu12", "npu13")}
    assert set(reset_groups({**chips, **silent}).values()) == {"npus"}


def test_a_card_without_a_brother_is_reset_alone() -> None:
    chips = {name: replace(each, brother=NONE) for name, each in a3().items()}
    assert list(reset_groups(chips).values()) == [f"card{number // 2}" for number in range(16)]


def test_chips_of_which_nothing_is_known_are_one_group() -> None:
    chips = {name: unread(each) for name, each in node(ProductSeries.ASCEND_950, 4).items()}
    assert set(reset_groups(chips).values()) == {"npus"}


@pytest.mark.parametrize(
    ("name", "board", "pci_device", "series"),
    [
        ("Ascend910", 0xB0, 0xD803, ProductSeries.A3),
        ("Ascend910", None, 0xD803, ProductSeries.A3),
        ("", None, 0xD803, ProductSeries.A3),
        ("Ascend910", 0xD3, None, ProductSeries.A3),
        ("Ascend910", None, None, None),
        ("910B2", 0x30, 0xD802, ProductSeries.ASCEND_910B),
        ("310B4", 0x81, None, ProductSeries.ASCEND_310),
        ("310P3", 0x97, 0xD500, ProductSeries.ASCEND_310),
        ("910A", None, None, ProductSeries.ASCEND_910),
        ("Ascend950PR", None, None, ProductSeries.ASCEND_950),
        ("", None, 0x1234, None),
    ],
)
def test_the_series_is_what_the_library_takes_the_chip_for(
    name: str, board: int | None, pci_device: int | None, series: ProductSeries | None
) -> None:
    assert series_of(name, board, pci_device) is series
