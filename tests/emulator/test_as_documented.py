"""A C program that knows only the vendor's header sees what the vendor's documents promise."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nodeagent.emulator.node import EmulatedNode
from nodeagent.emulator.npus import OCCUR, ONCE, RECOVER
from tests.emulator.conftest import Program

ABI: dict[str, Any] = json.loads((Path(__file__).parents[1] / "fixtures/dcmi_abi.json").read_text())
MakeNode = Callable[[str], EmulatedNode]
SUBSCRIBED = "subscribed, once more -8020\n"
"""A process can subscribe once."""


def words(line: str) -> dict[str, str]:
    """``card 3 devices 1 …`` as a mapping; the first word names the line."""
    parts = line.split()
    return dict(zip(parts[::2], parts[1::2], strict=False))


def test_the_structures_are_where_the_facts_say(program: Program, make_node: MakeNode) -> None:
    printed = dict(line.split() for line in program.run(make_node("8x910B"), "layout"))

    for what, number in printed.items():
        name, _, field = what.partition(".")
        facts = ABI["structs"][name]
        wanted = {each: offset for each, _, offset, _ in facts["fields"]}[field] if field else facts["size"]
        assert (what, int(number)) == (what, wanted)
    assert len(printed) == 21


def test_a_node_of_eight_chips_is_toured(program: Program, make_node: MakeNode) -> None:
    node = make_node("8x910B")

    lines = program.run(node, "tour")

    cards = [words(line) for line in lines if line.startswith("card ")]
    chips = [line for line in lines if line.startswith("npu ")]
    die = f"{node.chip('npu3').vdie[0]:08x}"
    assert [int(card["card"]) for card in cards] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert {(card["devices"], card["largest"], card["mcu"], card["brother"]) for card in cards} == {
        ("1", "0", "1", "-8255")
    }
    assert f"npu 3/0 logic 3 physical 3 back 3/0 chip 910B2 die {die} health 0 codes 0" in chips
    assert len([line for line in lines if line.startswith("mcu ")]) == 8


def test_two_dies_share_a_card_and_cards_have_brothers(program: Program, make_node: MakeNode) -> None:
    lines = program.run(make_node("16xA3"), "tour")

    cards = {int(words(line)["card"]): words(line) for line in lines if line.startswith("card ")}
    assert sorted(cards) == list(range(8))
    assert (cards[2]["devices"], cards[2]["largest"], cards[2]["mcu"], cards[2]["brother"]) == (
        "2",
        "1",
        "2",
        "6",
    )
    assert [line.split()[3] for line in lines if line.startswith("npu 5/")] == ["10", "11"]


def test_300i_duo_has_two_chips_a_card_and_no_network(program: Program, make_node: MakeNode) -> None:
    lines = program.run(make_node("4x300IDuo"), "tour")

    cards = [words(line) for line in lines if line.startswith("card ")]
    assert [(card["devices"], card["brother"]) for card in cards] == [("2", "-8255"), ("2", "-8255")]


def test_950_refuses_the_first_generation_of_calls_and_answers_the_second(
    program: Program, make_node: MakeNode
) -> None:
    lines = program.run(make_node("8x950"), "tour_v2")

    assert lines == ["v1 init -8255", *(f"device {number} health 0" for number in range(8))]


def test_910b_refuses_the_second_generation(program: Program, make_node: MakeNode) -> None:
    assert program.run(make_node("8x910B"), "tour_v2") == ["v1 init 0", "dcmiv2_init() answers -8255"]


def test_nothing_is_written_behind_the_room_that_was_given(program: Program, make_node: MakeNode) -> None:
    node = make_node("8x910B")
    for number in range(4):
        node.raise_code("npu0", 0x80000000 + number)

    assert program.run(node, "list", "3") == [
        "cards 3 behind untouched",
        "codes 0 answer -8001 first 55555555 behind untouched",
    ]
    assert program.run(node, "list", "4")[1] == "codes 4 answer 0 first 80000000 behind untouched"


@pytest.mark.parametrize("count", [-1, 10_000])
def test_a_count_can_lie_and_still_nothing_is_overwritten(
    program: Program, make_node: MakeNode, count: int
) -> None:
    node = make_node("8x910B")
    node.set_node("card_count_lie", count)
    node.set("npu0", "code_count_lie", count)

    cards, codes = program.run(node, "list", "3")

    assert cards == f"cards {count} behind untouched"
    assert (codes.split()[1], codes.split()[-1]) == (str(count), "untouched")


@pytest.mark.parametrize(("words_known", "size"), [(7, 28), (9, 36)])
def test_ecc_info_is_written_as_long_as_the_library_knows_it(
    program: Program, make_node: MakeNode, words_known: int, size: int
) -> None:
    node = make_node("8x910B")
    node.set_node("ecc_words", words_known)
    node.set("npu0", "ecc_total_double", 5, place=2)

    assert program.run(node, "ecc") == [f"ecc {size} bytes, 0 single, 5 double"]


def test_a_reset_goes_through_the_stages_and_the_chip_answers_only_after_it(
    program: Program, make_node: MakeNode
) -> None:
    node = make_node("8x910B")
    for device in node.names():
        node.set(device, "reset_ms", 3000)  # each stage is long enough to be seen on a loaded machine

    assert program.run(node, "boot") == [
        "boot 0 health answers -8012",
        "boot 1 health answers -8012",
        "boot 2 health answers -8012",
        "boot 16 health answers 0",
        "health answers 0",
    ]
    assert {node.chip(device).resets for device in node.names()} == {1}


def test_subscribers_are_told_changes_on_another_thread(program: Program, make_node: MakeNode) -> None:
    node = make_node("8x910B")
    node.raise_code("npu1", 0x80CB8009)
    with program.running(node, "subscribe", "4", "0") as lines:
        assert lines.readline() == SUBSCRIBED
        node.raise_code("npu3", 0x80E01801, severity=3, name="HBM")
        node.clear_code("npu3", 0x80E01801)
        node.send_event("npu5", 0x8C2FA001, ONCE, severity=0, name="one-off")
        node.send_event("npu5", 0xFFFFFFFF, RECOVER, name="odd", device_id=700)

        assert [line.rstrip() for line in lines] == [
            "event 80E01801 assertion 1 severity 3 device 3 node 70 name deviceid=3, HBM thread other",
            "event 80E01801 assertion 0 severity 3 device 3 node 70 name deviceid=3, HBM thread other",
            "event 8C2FA001 assertion 2 severity 0 device 5 node 617 name deviceid=5, one-off thread other",
            "event FFFFFFFF assertion 0 severity 2 device 700 node 7ff name deviceid=700, odd thread other",
        ]


def test_an_event_is_waited_for(program: Program, make_node: MakeNode) -> None:
    node = make_node("8x910B")
    node.raise_code("npu3", 0x80CB8009)
    with program.running(node, "wait", "-1") as lines:
        assert lines.readline() == "at once -8006\n"
        node.send_event("npu2", 0x81078603, OCCUR)
        node.send_event("npu3", 0x80E01801, OCCUR)

        assert lines.readline() == "waited 80E01801\n"


def test_the_filter_is_read_though_it_is_passed_by_value(program: Program, make_node: MakeNode) -> None:
    node = make_node("8x910B")
    with program.running(node, "subscribe", "1", "80E01801") as lines:
        assert lines.readline() == SUBSCRIBED
        node.send_event("npu0", 0x81078603, OCCUR)
        node.send_event("npu0", 0x80E01801, OCCUR)

        assert lines.readline().startswith("event 80E01801 ")


def test_the_end_of_a_reset_is_an_event_of_every_chip_of_the_board(
    program: Program, make_node: MakeNode
) -> None:
    node = make_node("8x910B")
    for device in node.names():
        node.set(device, "reset_ms", 50)
    with program.running(node, "subscribe", "8", "8C2FA009") as lines:
        assert lines.readline() == SUBSCRIBED
        program.run(node, "boot")

        printed = sorted(line.split(" severity")[0] + line.split("device")[1][:2] for line in lines)

    assert printed == [f"event 8C2FA009 assertion 2 {number}" for number in range(8)]
