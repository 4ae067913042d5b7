"""Our declarations against the facts of the vendor's headers: sizes, offsets, argument lists."""

import ctypes
import json
from pathlib import Path
from typing import Any

import pytest

from nodeagent.drivers.ascend import abi, unifiedbus
from nodeagent.drivers.ascend.dcmi_calls import CHIP_CALLS, LIBRARY_CALLS, DcmiGeneration

FACTS: dict[str, Any] = json.loads((Path(__file__).parents[3] / "fixtures/dcmi_abi.json").read_text())

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
