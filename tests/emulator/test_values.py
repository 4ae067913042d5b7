"""What the double of libdcmi.so measures, by product, and how wrong it can be made."""

import ctypes
from collections.abc import Callable

import pytest

from nodeagent.emulator.node import EmulatedNode

MakeNode = Callable[[str], EmulatedNode]
CHIP, HCCS, SIO = 12, 16, 56


def numbered(node: EmulatedNode, function: str, number: int) -> tuple[int, int]:
    """The answer and the value of a call with a number of its own, of card 0."""
    value = ctypes.c_uint(99)
    answer = getattr(ctypes.CDLL(str(node.dcmi)), function)(0, 0, number, ctypes.byref(value))
    return int(answer), value.value


def pair(node: EmulatedNode, main: int, sub: int, room: int) -> tuple[int, int, bytes]:
    """The answer of ``dcmi_get_device_info``, the size it gives, and the bytes it wrote."""
    size, written = ctypes.c_uint(room), ctypes.create_string_buffer(room)
    answer = ctypes.CDLL(str(node.dcmi)).dcmi_get_device_info(0, 0, main, sub, written, ctypes.byref(size))
    return int(answer), size.value, written.raw


@pytest.mark.parametrize(("description", "ddr", "hbm"), [("8x910B", -8255, 0), ("4x300IDuo", 0, -8255)])
def test_only_the_memory_that_a_product_has_is_measured(
    make_node: MakeNode, description: str, ddr: int, hbm: int
) -> None:
    node = make_node(description)

    assert numbered(node, "dcmi_get_device_utilization_rate", 1)[0] == ddr
    assert numbered(node, "dcmi_get_device_utilization_rate", 6)[0] == hbm
    assert numbered(node, "dcmi_get_device_utilization_rate", 2) == (0, 0)
    assert numbered(node, "dcmi_get_device_utilization_rate", 77)[0] == -8001


@pytest.mark.parametrize(("description", "memory"), [("8x910B", 2), ("16xA3", 2), ("4x300IDuo", 0)])
def test_errors_are_counted_of_the_one_memory_that_a_product_counts_them_of(
    make_node: MakeNode, description: str, memory: int
) -> None:
    ask = ctypes.CDLL(str(make_node(description).dcmi)).dcmi_get_device_ecc_info
    answered = ctypes.create_string_buffer(64)

    answers = {kind: ask(0, 0, kind, answered) for kind in range(4)}
    assert answers == {0: -8255, 1: -8255, 2: -8255, 3: -8255, memory: 0}


def test_a_value_can_be_nonsense(make_node: MakeNode) -> None:
    node = make_node("8x910B")
    node.set("npu0", "utilization_percent", 255, place=2)

    assert numbered(node, "dcmi_get_device_utilization_rate", 2) == (0, 255)


def test_pairs_of_numbers_say_how_much_they_wrote(make_node: MakeNode) -> None:
    node = make_node("8x910B")
    node.set("npu0", "hccs_hdlc_status", 1)

    assert pair(node, HCCS, 0, 64)[:2] == (0, 12)
    assert pair(node, HCCS, 0, 64)[2][:12] == bytes([0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0])
    assert pair(node, HCCS, 5, 1024)[:2] == (0, 1024)
    assert pair(node, HCCS, 0, 8)[:2] == (-8001, 8)
    assert pair(node, HCCS, 99, 64)[0] == -8255


@pytest.mark.parametrize(
    ("description", "hccs", "sio", "pod"),
    [("8x910B", 0, -8255, -8255), ("16xA3", 0, 0, 0), ("4x300IDuo", -8255, -8255, -8255)],
)
def test_a_product_tells_only_of_links_that_it_has(
    make_node: MakeNode, description: str, hccs: int, sio: int, pod: int
) -> None:
    node = make_node(description)

    answers = [pair(node, main, sub, 1024)[0] for main, sub in ((HCCS, 0), (SIO, 0), (CHIP, 1))]
    assert answers == [hccs, sio, pod]


def test_a_product_answers_only_what_its_documents_promise(make_node: MakeNode) -> None:
    node = make_node("8x910B")
    library = ctypes.CDLL(str(node.dcmi))
    answered = ctypes.create_string_buffer(64)

    assert library.dcmi_get_device_pcie_error_cnt(0, 0, answered) == -8255
    assert library.dcmi_get_device_network_health(0, 0, answered) == 0
    node.set_supported("dcmi_get_device_pcie_error_cnt", True)
    assert library.dcmi_get_device_pcie_error_cnt(0, 0, answered) == 0


def test_a_process_is_listed_with_its_memory_in_bytes(make_node: MakeNode) -> None:
    node = make_node("8x910B")
    node.hold("npu0", 4711, memory_bytes=5 << 20)
    listed, count = (ctypes.c_uint64 * 64)(), ctypes.c_int()

    ctypes.CDLL(str(node.dcmi)).dcmi_get_device_resource_info(0, 0, listed, ctypes.byref(count))

    assert (count.value, listed[0] & 0xFFFFFFFF, listed[1]) == (1, 4711, 5 << 20)


def test_texts_can_lack_their_end(make_node: MakeNode) -> None:
    node = make_node("8x910B")
    node.set_node("unterminated", 1)
    version = ctypes.create_string_buffer(b"\0" * 40, 40)

    assert ctypes.CDLL(str(node.dcmi)).dcmi_get_dcmi_version(version, 32) == 0
    assert version.raw == b"X" * 32 + b"\0" * 8


def test_another_die_in_the_slot_and_other_logic_ids(make_node: MakeNode) -> None:
    node = make_node("8x910B")
    library = ctypes.CDLL(str(node.dcmi))
    before, after, logic = (ctypes.c_uint * 5)(), (ctypes.c_uint * 5)(), ctypes.c_int()
    library.dcmi_get_device_die_v2(2, 0, 1, before)
    node.replace_die("npu2", 77)
    library.dcmi_get_device_die_v2(2, 0, 1, after)
    node.renumber([7, 6, 5, 4, 3, 2, 1, 0])
    library.dcmi_get_device_logic_id(ctypes.byref(logic), 2, 0)

    assert (list(before) != list(after), logic.value) == (True, 5)


NDIE, VDIE, DDIE = 0, 1, 2


def test_a_950_has_a_ddie_alone_and_others_have_their_vdie_by_both_names(make_node: MakeNode) -> None:
    older, newer = ctypes.CDLL(str(make_node("8x910B").dcmi)), ctypes.CDLL(str(make_node("8x950").dcmi))
    words = (ctypes.c_uint * 5)()

    assert [older.dcmi_get_device_die_v2(2, 0, die, words) for die in (NDIE, VDIE, DDIE)] == [-8255, 0, 0]
    assert [newer.dcmiv2_get_device_die_id(2, die, words) for die in (NDIE, VDIE, DDIE)] == [-8255, -8255, 0]


def test_a_library_is_not_initialised_where_no_chip_answers(make_node: MakeNode) -> None:
    older, newer = make_node("8x910B"), make_node("8x950")
    for node in (older, newer):
        for name in node.names():
            node.drop(name)

    assert ctypes.CDLL(str(older.dcmi)).dcmi_init() == -8012
    assert ctypes.CDLL(str(newer.dcmi)).dcmiv2_init() == -8012


def test_the_mcu_of_a_card_is_well_whatever_its_chip_is(make_node: MakeNode) -> None:
    node = make_node("8x910B")
    library = ctypes.CDLL(str(node.dcmi))
    node.raise_code("npu0", 0x80E01801, severity=3)
    value = ctypes.c_uint(99)

    assert (library.dcmi_get_device_health(0, 0, ctypes.byref(value)), value.value) == (0, 3)
    assert (library.dcmi_get_device_health(0, 1, ctypes.byref(value)), value.value) == (0, 0)
    assert library.dcmi_get_device_temperature(0, 1, ctypes.byref(value)) == -8255
    assert library.dcmi_get_device_health(0, 2, ctypes.byref(value)) == -8001


def test_pci_lists_what_was_described(make_node: MakeNode) -> None:
    node = make_node("8x910B")
    listed = sorted((node.sysfs / "bus/pci/devices").iterdir())

    assert [path.name for path in listed[:2]] == ["0000:01:00.0", "0000:05:00.0"]
    assert [(path / "vendor").read_text() for path in listed] == ["0x19e5\n"] * 8
    assert {(path / "class").read_text() for path in listed} == {"0x120000\n"}
