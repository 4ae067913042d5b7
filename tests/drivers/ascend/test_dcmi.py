"""Our declarations against the facts of the vendor's headers: sizes, offsets, argument lists.

The binding on the real double: both generations, refusals, and what no library should answer.
"""

import ctypes
import json
from pathlib import Path
from typing import Any

import pytest

from nodeagent.drivers.api import CallFailed, Unavailable
from nodeagent.drivers.ascend import abi, dcmi, unifiedbus
from nodeagent.drivers.ascend.dcmi import DcmiLibrary
from nodeagent.drivers.ascend.dcmi_calls import (
    CHIP_CALLS,
    DCMI_STATUS,
    LIBRARY_CALLS,
    DcmiChip,
    DcmiGeneration,
    ImpossibleValue,
    NotReady,
    NotSupported,
)
from nodeagent.drivers.ascend.telemetry import ChipTelemetry
from nodeagent.emulator.node import EmulatedNode
from tests.drivers.ascend.conftest import Emulate

FACTS: dict[str, Any] = json.loads((Path(__file__).parents[2] / "fixtures/dcmi_abi.json").read_text())

STRUCTURES = {
    "dcmi_event_filter": abi.EventFilter,
    "dcmi_dms_fault_event": abi.FaultEvent,
    "dcmi_event": abi.DcmiEvent,
    "dcmi_chip_info_v2": abi.ChipInfo,
    "dcmi_pcie_info_all": abi.PcieInfo,
    "dcmi_die_id": abi.DieId,
    "dcmi_board_info": abi.BoardInfo,
    "dcmi_elabel_info": abi.ElabelInfo,
    "dcmi_hbm_info": abi.HbmInfo,
    "dcmi_network_pkt_stats_info": abi.PacketStatistics,
    "dcmi_chip_pcie_err_rate": abi.PcieErrorRate,
    "dcmi_pcie_link_error_info": abi.PcieLinkErrors,
    "dcmi_hccs_statues": abi.HccsStatus,
    "dcmi_hccs_statistic_info_u64": abi.HccsStatistics,
    "dcmi_ub_port_link_status": abi.UbPortLinkStatus,
    "dcmi_proc_mem_info": abi.ProcessMemory,
}
SWITCH_STRUCTURES = {"LqDcmiEvent": abi.SwitchEvent, "lq_dcmi_event_filter": abi.SwitchFilter}

Layout = dict[str, tuple[int, int]]


def declared(form: type[ctypes.Structure]) -> Layout:
    names = [field[0] for field in form._fields_]
    return {name: (getattr(form, name).offset, getattr(form, name).size) for name in names}


def documented(facts: dict[str, Any]) -> Layout:
    return {name: (offset, size) for name, _, offset, size in facts["fields"]}


@pytest.mark.parametrize("name", STRUCTURES)
def test_a_structure_lies_in_memory_as_the_header_says(name: str) -> None:
    facts, form = FACTS["structs"][name], STRUCTURES[name]
    assert ctypes.sizeof(form) == facts["size"]
    there = documented(facts)
    assert {
        field: place for field, place in declared(form).items() if field in there
    }.items() <= there.items()


@pytest.mark.parametrize("name", SWITCH_STRUCTURES)
def test_a_structure_of_the_switch_library_lies_as_its_header_says(name: str) -> None:
    facts, form = FACTS["switch_structs"][name], SWITCH_STRUCTURES[name]
    assert (ctypes.sizeof(form), declared(form)) == (facts["size"], documented(facts))


def test_every_field_that_is_read_is_a_field_of_the_header() -> None:
    grouped = {"before_tx", "mac_tx_bad", "mac_rx_bad", "roce", "after"}
    unknown = {
        f"{name}.{field}"
        for name, form in STRUCTURES.items()
        for field in declared(form)
        if field not in documented(FACTS["structs"][name]) and field not in grouped
    }
    assert unknown == set()


def test_ecc_counters_have_room_for_either_header() -> None:
    short, long = FACTS["structs"]["dcmi_ecc_info"], FACTS["mindcluster_structs"]["dcmi_ecc_info"]
    assert (short["size"], long["size"]) == (28, 36)
    assert declared(abi.EccInfo) == documented(long)
    assert documented(short).items() <= declared(abi.EccInfo).items()


def test_a_library_may_write_more_than_is_declared() -> None:
    info = abi.with_room(abi.EccInfo)
    ctypes.memset(ctypes.byref(info), 0xAA, ctypes.sizeof(abi.EccInfo) + abi.ROOM_BYTES)
    assert info.single_bit_error_cnt == 0xAAAAAAAA


def is_alike(declared: Any, argument: str) -> bool:
    """A pointer where C has one, a structure of its name by value, and a whole number of its width."""
    if "*" in argument:
        return declared in (ctypes.c_void_p, ctypes.c_char_p) or hasattr(declared, "contents")
    if "callback" in argument:
        return declared in (abi.FaultCallback, abi.SwitchCallback)
    if argument.startswith("struct "):
        return issubclass(declared, ctypes.Structure)
    return declared in (ctypes.c_int, ctypes.c_uint)


@pytest.mark.parametrize(
    ("name", "generation"),
    [(name, each) for name, call in CHIP_CALLS.items() for each in DcmiGeneration if call.symbol(each)],
)
def test_a_call_on_a_chip_is_made_with_the_arguments_of_the_header(
    name: str, generation: DcmiGeneration
) -> None:
    call = CHIP_CALLS[name]
    symbol = call.symbol(generation)
    by_card = call.by_card and generation is DcmiGeneration.V1
    prototype = call.prototype(generation)[: None if not by_card else len(call.arguments) + 1]
    assert_alike(symbol, prototype)


@pytest.mark.parametrize("symbol", LIBRARY_CALLS)
def test_a_call_about_no_chip_is_made_with_the_arguments_of_the_header(symbol: str) -> None:
    assert_alike(symbol, LIBRARY_CALLS[symbol])


def assert_alike(symbol: str, prototype: tuple[Any, ...]) -> None:
    arguments = [
        argument for argument in FACTS["functions"][symbol].split(", ") if argument not in ("", "void")
    ]
    assert len(prototype) == len(arguments)
    differing = [pair for pair in zip(prototype, arguments, strict=True) if not is_alike(*pair)]
    assert differing == []


def test_the_switch_library_is_called_as_its_header_says() -> None:
    """The switch library's functions stand in no table of facts, only in its header's text."""
    assert {symbol: len(prototype) for symbol, prototype in unifiedbus.PROTOTYPES.items()} == {
        "lq_dcmi_init": 0,
        "lq_dcmi_subscribe_fault_event": 2,
        "lq_dcmi_get_fault_info": 3,
    }


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"HBM fault\0rest", "HBM fault"),
        (b"x" * 256, "x" * 256),
        (b"\xff\xfe\x80", "\N{REPLACEMENT CHARACTER}" * 3),
        (b"a\x1b[31mb", "a\N{REPLACEMENT CHARACTER}[31mb"),
        (b"", ""),
    ],
)
def test_a_text_is_read_whatever_the_library_left_in_it(raw: bytes, text: str) -> None:
    assert abi.text(raw) == text


def opened(node: EmulatedNode) -> DcmiLibrary:
    return dcmi.open_library(str(node.dcmi))


def chip_of(node: EmulatedNode, device: str = "npu3") -> DcmiChip:
    library = opened(node)
    places = [place for card in library.cards() for place in library.places(card)]
    return library.chip(next(place for place in places if f"npu{place.physical}" == device))


@pytest.mark.parametrize(
    ("description", "generation", "chips"),
    [
        ("8x910B", DcmiGeneration.V1, 8),
        ("16x910B", DcmiGeneration.V1, 16),
        ("16xA3", DcmiGeneration.V1, 16),
        ("4x300IDuo", DcmiGeneration.V1, 4),
        ("8x950", DcmiGeneration.V2, 8),
    ],
)
def test_the_chips_of_every_product_are_found(
    emulate: Emulate, description: str, generation: DcmiGeneration, chips: int
) -> None:
    library = opened(emulate(description))
    places = [place for card in library.cards() for place in library.places(card)]
    assert library.generation is generation
    assert sorted(place.physical for place in places) == list(range(chips))
    assert len({place.address for place in places}) == chips


def test_a_card_s_management_unit_is_no_chip(emulate: Emulate) -> None:
    library = opened(emulate("16xA3"))
    assert {len(library.places(card)) for card in library.cards()} == {2}


@pytest.mark.parametrize("status", DCMI_STATUS)
def test_a_failure_says_which_call_and_what_its_code_means(node: EmulatedNode, status: int) -> None:
    chip = chip_of(node)
    node.answer(status, "npu3", "dcmi_get_device_health")
    with pytest.raises(CallFailed) as failed:
        chip.unsigned("health")
    name, meaning = DCMI_STATUS[status]
    assert str(failed.value) == f"dcmi_get_device_health: {meaning} ({name}, {status})"
    assert failed.value.errno == -status


def test_a_code_that_no_document_has_is_told_as_it_is(node: EmulatedNode) -> None:
    chip = chip_of(node)
    node.answer(-4711, "npu3")
    with pytest.raises(CallFailed, match=r"a code that the vendor does not document \(UNKNOWN, -4711\)"):
        chip.error_codes()


def test_a_chip_that_is_not_ready_is_told_apart(node: EmulatedNode) -> None:
    chip = chip_of(node)
    node.drop("npu3")
    with pytest.raises(NotReady):
        chip.unsigned("health")


def test_a_call_that_the_product_lacks_is_told_apart(node: EmulatedNode) -> None:
    chip = chip_of(node)
    node.set_supported("dcmi_get_device_health", False)
    with pytest.raises(NotSupported):
        chip.unsigned("health")


def test_a_symbol_that_the_library_lacks_is_a_call_not_supported(node: EmulatedNode) -> None:
    node.without("dcmi_get_device_voltage", "dcmi_get_device_type")
    with pytest.raises(NotSupported, match=r"dcmi_get_device_voltage: the library has no such function"):
        chip_of(node).unsigned("voltage")


def test_a_call_of_the_other_generation_is_not_supported(emulate: Emulate) -> None:
    with pytest.raises(NotSupported, match="dcmi_get_netdev_brother_device"):
        chip_of(emulate("8x950")).signed("brother")


@pytest.mark.parametrize("count", [-1, 129, 10_000])
def test_a_count_of_codes_that_cannot_be_is_refused(node: EmulatedNode, count: int) -> None:
    chip = chip_of(node)
    node.set("npu3", "code_count_lie", count)
    with pytest.raises(
        ImpossibleValue, match=f"the number of error codes is given as {count}; it must be 0 to 128"
    ):
        chip.error_codes()


@pytest.mark.parametrize("count", [-1, 65, 10_000])
def test_a_count_of_cards_that_cannot_be_is_refused(node: EmulatedNode, count: int) -> None:
    library = opened(node)
    node.set_node("card_count_lie", count)
    with pytest.raises(ImpossibleValue, match=f"the number of cards is given as {count}"):
        library.cards()


def test_the_codes_are_those_that_stand(node: EmulatedNode) -> None:
    chip = chip_of(node)
    node.raise_code("npu3", 0x80E01801)
    node.raise_code("npu3", 0x81078603)
    codes, full = chip.error_codes()
    assert (sorted(codes), full) == ([0x80E01801, 0x81078603], False)


def test_a_number_that_the_library_never_wrote_is_no_measured_value() -> None:
    telemetry = ChipTelemetry(DcmiChip({"temperature": lambda *_: 0}, DcmiGeneration.V1, (0, 0)))
    assert (telemetry.read(slow_round=True), telemetry.refused) == ({}, 1)


def test_a_list_filled_to_its_end_is_told_as_full(node: EmulatedNode) -> None:
    chip = chip_of(node)
    for number in range(130):
        node.raise_code("npu3", 0x80000001 + number, deliver=False)
    codes, full = chip.error_codes()
    assert (len(codes), full) == (128, True)


def test_a_950_tells_the_severity_of_standing_faults(emulate: Emulate) -> None:
    node = emulate("8x950")
    chip = chip_of(node)
    node.raise_code("npu3", 0x80E01801, severity=3, deliver=False)
    assert [(event.event_id, event.severity) for event in chip.current_events()] == [(0x80E01801, 3)]


def test_a_driver_that_refuses_to_start_is_unavailable_with_its_answer(node: EmulatedNode) -> None:
    node.answer(-8010, None, "dcmi_init")
    with pytest.raises(Unavailable) as refused:
        opened(node)
    assert str(refused.value) == "dcmi_init: sending a message to the device failed (SEND_MSG_FAIL, -8010)"
    assert (refused.value.errno, refused.value.absent) == (8010, False)


def test_a_driver_that_permits_nothing_is_told_by_the_vendors_name(node: EmulatedNode) -> None:
    node.answer(-8002, None, "dcmi_init")
    with pytest.raises(Unavailable, match="OPER_NOT_PERMITTED"):
        opened(node)
