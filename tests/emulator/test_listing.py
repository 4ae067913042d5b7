"""What libdcmi.so lists: as the vendor's does, what was there when it was initialised."""

import ctypes
from collections.abc import Callable

import pytest

from nodeagent.emulator.node import EmulatedNode

MakeNode = Callable[[str], EmulatedNode]


def initialised(node: EmulatedNode) -> ctypes.CDLL:
    library = ctypes.CDLL(str(node.dcmi))
    assert library.dcmi_init() == 0
    return library


def cards(library: ctypes.CDLL) -> list[int]:
    count, listed = ctypes.c_int(), (ctypes.c_int * 64)()
    assert library.dcmi_get_card_list(ctypes.byref(count), listed, 64) == 0
    return sorted(listed[: count.value])


def health(library: ctypes.CDLL, card: int) -> tuple[int, int]:
    answered = ctypes.c_uint()
    return library.dcmi_get_device_health(card, 0, ctypes.byref(answered)), answered.value


def test_a_chip_that_had_not_started_is_listed_without_its_id_until_the_next_initialisation(
    make_node: MakeNode,
) -> None:
    node = make_node("4x910B")
    node.drop("npu3")
    library = initialised(node)
    assert (cards(library), health(library, 3)) == ([-1, 0, 1, 2], (-8001, 0))
    node.return_("npu3")
    assert (cards(library), health(library, 3)) == ([-1, 0, 1, 2], (-8001, 0))
    assert library.dcmi_init() == 0
    assert (cards(library), health(library, 3)) == ([0, 1, 2, 3], (0, 0))


def test_a_chip_that_comes_later_is_found_by_another_process_only(make_node: MakeNode) -> None:
    node = make_node("4x910B")
    node.take_out("npu3")
    library = initialised(node)
    node.return_("npu3")
    assert library.dcmi_init() == 0
    assert cards(library) == [0, 1, 2]


def test_a_chip_that_the_driver_removes_stays_listed_and_its_health_says_so(make_node: MakeNode) -> None:
    node = make_node("4x910B")
    library = initialised(node)
    node.take_out("npu3")
    answered, codes = ctypes.c_uint(), (ctypes.c_uint * 128)()
    assert (cards(library), health(library, 3)) == ([0, 1, 2, 3], (0, 0xFFFFFFFF))
    assert library.dcmi_get_device_errorcode_v2(3, 0, ctypes.byref(answered), codes, 128) == -8005
    assert library.dcmi_get_device_temperature(3, 0, ctypes.byref(answered)) == -8007
    assert library.dcmi_init() == 0
    assert cards(library) == [-1, 0, 1, 2]


def test_nothing_is_listed_before_the_initialisation(make_node: MakeNode) -> None:
    library = ctypes.CDLL(str(make_node("4x910B").dcmi))
    assert library.dcmi_get_card_list(ctypes.byref(ctypes.c_int()), (ctypes.c_int * 64)(), 64) == -8005


def test_a_chip_that_drops_later_stays_listed(make_node: MakeNode) -> None:
    node = make_node("4x910B")
    library = initialised(node)
    node.drop("npu3")
    assert (cards(library), health(library, 3)) == ([0, 1, 2, 3], (-8012, 0))


def test_a_card_of_a_server_is_listed_when_both_of_its_dies_have_started(make_node: MakeNode) -> None:
    node = make_node("16xA3")
    node.drop("npu1")
    library = initialised(node)
    assert (cards(library), health(library, 0)) == ([-1, *range(1, 8)], (-8001, 0))


@pytest.mark.parametrize(("dropped", "left"), [("npu0", 1), ("npu1", 0)])
def test_the_die_that_is_left_of_a_300i_duo_is_its_device_0(
    make_node: MakeNode, dropped: str, left: int
) -> None:
    node = make_node("4x300IDuo")
    node.drop(dropped)
    library = initialised(node)
    count, logic, physical = ctypes.c_int(), ctypes.c_int(), ctypes.c_uint()
    assert (cards(library), library.dcmi_get_device_num_in_card(0, ctypes.byref(count))) == ([0, 1], 0)
    assert library.dcmi_get_device_logic_id(ctypes.byref(logic), 0, 0) == 0
    assert library.dcmi_get_device_phyid_from_logicid(logic, ctypes.byref(physical)) == 0
    assert (count.value, physical.value) == (1, left)


def test_a_card_of_which_no_chip_has_started_is_not_listed(make_node: MakeNode) -> None:
    node = make_node("4x310P")
    node.drop("npu2")
    assert cards(initialised(node)) == [0, 1, 3]
