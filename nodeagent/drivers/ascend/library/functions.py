"""The functions of libdcmi that are called, with their prototypes, for both of its generations.

``dcmi_*`` names a chip by (card, device), ``dcmiv2_*`` (Ascend 950) by one number; what comes after that
is alike. So a call has one name of ours here, the symbol of each generation, and the arguments behind the
chip's address. A symbol that the library does not have is simply not bound.
"""

import ctypes
from collections.abc import Callable, Mapping
from ctypes import POINTER, c_char_p, c_int, c_uint, c_void_p
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from nodeagent.drivers.ascend.library.abi import (
    BoardInfo,
    ChipInfo,
    DieId,
    EccInfo,
    ElabelInfo,
    Event,
    EventFilter,
    FaultCallback,
    HbmInfo,
    PacketStatistics,
    PcieErrorRate,
    PcieInfo,
    ProcessMemory,
    UbPortLinkStatus,
)

Function = Callable[..., int]

_INT: Final = POINTER(c_int)
_UINT: Final = POINTER(c_uint)


class Generation(Enum):
    """How many numbers name a chip."""

    V1 = 2
    V2 = 1


@dataclass(frozen=True, slots=True)
class ChipCall:
    """``v1``, ``v2``: symbols, "" where that generation has none. ``by_card``: v1 takes only the card."""

    v1: str
    v2: str
    arguments: tuple[Any, ...]
    by_card: bool = False

    def symbol(self, generation: Generation) -> str:
        return self.v1 if generation is Generation.V1 else self.v2

    def prototype(self, generation: Generation) -> tuple[Any, ...]:
        """All argument types, the chip's address included."""
        numbers = 1 if self.by_card else generation.value
        return (c_int,) * numbers + self.arguments


def _both(name: str, *arguments: Any, v2: str = "") -> ChipCall:
    return ChipCall(f"dcmi_{name}", f"dcmiv2_{v2 or name}", arguments)


CHIP_CALLS: Final[Mapping[str, ChipCall]] = {
    "type": _both("get_device_type", _INT),
    "chip_info": _both("get_device_chip_info_v2", POINTER(ChipInfo), v2="get_device_chip_info"),
    "chip_info_older": ChipCall("dcmi_get_device_chip_info", "", (POINTER(ChipInfo),)),
    "pcie_info": _both("get_device_pcie_info_v2", POINTER(PcieInfo), v2="get_device_pcie_info"),
    "die": _both("get_device_die_v2", c_int, POINTER(DieId), v2="get_device_die_id"),
    "board_info": _both("get_device_board_info", POINTER(BoardInfo)),
    "elabel": ChipCall(
        "dcmi_get_card_elabel_v2", "dcmiv2_get_device_elabel_info", (POINTER(ElabelInfo),), by_card=True
    ),
    "brother": ChipCall("dcmi_get_netdev_brother_device", "", (_INT,)),
    "health": _both("get_device_health", _UINT),
    "error_codes": _both("get_device_errorcode_v2", _INT, _UINT, c_uint, v2="get_device_error_code_list"),
    "current_events": _both("get_device_current_fault_event", POINTER(Event), c_int, _INT),
    "boot_status": _both("get_device_boot_status", _INT),
    "reset": ChipCall("dcmi_set_device_reset", "dcmiv2_reset_device", (c_int,)),
    "outband_channel": _both("get_device_outband_channel_state", _INT),
    "pre_reset": ChipCall("dcmi_pre_reset_soc", "dcmiv2_pre_reset_device", ()),
    "rescan": ChipCall("dcmi_rescan_soc", "dcmiv2_rescan_device", ()),
    "temperature": _both("get_device_temperature", _INT),
    "power": _both("get_device_power_info", _INT),
    "voltage": _both("get_device_voltage", _UINT),
    "frequency": _both("get_device_frequency", c_int, _UINT),
    "utilization": _both("get_device_utilization_rate", c_int, _UINT),
    "hbm": _both("get_device_hbm_info", POINTER(HbmInfo)),
    "ecc": _both("get_device_ecc_info", c_int, POINTER(EccInfo)),
    "network_health": _both("get_device_network_health", _INT),
    "packets": _both("get_netdev_pkt_stats_info", c_int, POINTER(PacketStatistics)),
    "info": _both("get_device_info", c_int, c_uint, c_void_p, _UINT),
    "pcie_errors": _both("get_device_pcie_error_cnt", POINTER(PcieErrorRate)),
    "ub_ports": ChipCall(
        "dcmi_get_ub_port_link_status_info", "dcmiv2_get_ub_port_link_status", (POINTER(UbPortLinkStatus),)
    ),
    "processes": _both(
        "get_device_resource_info", POINTER(ProcessMemory), _INT, v2="get_device_proc_mem_info"
    ),
}

LIBRARY_CALLS: Final[Mapping[str, tuple[Any, ...]]] = {
    "dcmi_init": (),
    "dcmi_get_driver_version": (c_char_p, c_uint),
    "dcmi_get_card_list": (_INT, _INT, c_int),
    "dcmi_get_device_num_in_card": (c_int, _INT),
    "dcmi_get_device_logic_id": (_INT, c_int, c_int),
    "dcmi_get_device_phyid_from_logicid": (c_uint, _UINT),
    "dcmi_subscribe_fault_event": (c_int, c_int, EventFilter, FaultCallback),
    "dcmiv2_init": (),
    "dcmiv2_get_driver_version": (c_char_p, c_uint),
    "dcmiv2_get_device_list": (_INT, _INT, c_int),
    "dcmiv2_get_chip_phy_id_by_dev_id": (c_int, _UINT),
    "dcmiv2_subscribe_fault_event": (c_int, EventFilter, FaultCallback),
}
"""Those about no single chip, or about finding one. v1's list of cards has its count first, v2's second."""


def bind(library: ctypes.CDLL, symbol: str, prototype: tuple[Any, ...]) -> Function | None:
    """The function with its prototype, None if the library does not have it."""
    try:
        function = library[symbol]
    except AttributeError:
        return None
    function.argtypes = prototype
    function.restype = c_int
    return function


def bind_chip_calls(library: ctypes.CDLL, generation: Generation) -> dict[str, Function]:
    """The calls by our names, without those that the library or the generation does not have."""
    bound = {}
    for name, call in CHIP_CALLS.items():
        symbol = call.symbol(generation)
        prototype = call.prototype(generation)
        if symbol and (function := bind(library, symbol, prototype)) is not None:
            bound[name] = function
    return bound


def bind_library_calls(library: ctypes.CDLL) -> dict[str, Function]:
    """The calls of the library itself, by their symbols."""
    found = {symbol: bind(library, symbol, prototype) for symbol, prototype in LIBRARY_CALLS.items()}
    return {symbol: function for symbol, function in found.items() if function is not None}
