"""The functions of libdcmi: their prototypes, what they answer, and the calls on one chip.

``dcmi_*`` functions take a chip as (card, device), ``dcmiv2_*`` functions (Ascend 950) as one number; the
arguments after that are alike. So each call has one name here, a symbol for each generation, and the
arguments after the chip's address. A symbol that the library lacks is not bound.

Every answer other than 0 has a name and a meaning. A failed call raises the function and the code; two
answers have a class of their own, because all callers treat them alike. Values that the library writes are
checked. Only the list of processes is asked for again.
"""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from ctypes import POINTER, byref, c_char_p, c_int, c_ubyte, c_uint, c_void_p
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from nodeagent.drivers.api import CallFailed
from nodeagent.drivers.ascend.abi import (
    HANDLED_EVENT,
    NO_NUMBER,
    UNWRITTEN,
    BoardInfo,
    ChipInfo,
    DcmiEvent,
    DieId,
    EccInfo,
    ElabelInfo,
    EventFilter,
    FaultCallback,
    FaultEvent,
    HbmInfo,
    PacketStatistics,
    PcieErrorRate,
    PcieInfo,
    ProcessMemory,
    Structure,
    UbPortLinkStatus,
    with_room,
)

SYMBOL_MISSING: Final = -99998
"""The vendor's tools give this number to a function that the library does not have."""

INVALID_DEVICE: Final = -8007
NOT_READY: Final = -8012
NOT_SUPPORTED: Final = -8255

DCMI_STATUS: Final[Mapping[int, tuple[str, str]]] = {
    -8001: ("INVALID_PARAMETER", "invalid parameter"),
    -8002: ("OPER_NOT_PERMITTED", "operation not permitted"),
    -8003: ("MEM_OPERATE_FAIL", "memory operation failed"),
    -8004: ("SECURE_FUN_FAIL", "secure function failed"),
    -8005: ("INNER_ERR", "inner error"),
    -8006: ("TIME_OUT", "timeout"),
    -8007: ("INVALID_DEVICE_ID", "invalid device id"),
    -8008: ("DEVICE_NOT_EXIST", "device does not exist"),
    -8009: ("IOCTL_FAIL", "ioctl failed"),
    -8010: ("SEND_MSG_FAIL", "sending a message to the device failed"),
    -8011: ("RECV_MSG_FAIL", "no message came back from the device"),
    -8012: ("NOT_READY", "device not ready"),
    -8013: ("NOT_SUPPORT_IN_CONTAINER", "not supported in a container"),
    -8014: ("FILE_OPERATE_FAIL", "file operation failed"),
    -8015: ("RESET_FAIL", "reset failed"),
    -8016: ("ABORT_OPERATE", "operation aborted"),
    -8017: ("IS_UPGRADING", "upgrade in progress"),
    -8020: ("RESOURCE_OCCUPIED", "resource occupied"),
    -8022: ("PARTITION_NOT_RIGHT", "conflict with the partition into virtual NPUs"),
    -8023: ("CONFIG_INFO_NOT_EXIST", "configuration not found"),
    -8255: ("NOT_SUPPORT", "not supported"),
    SYMBOL_MISSING: ("SYMBOL_MISSING", "the library has no such function"),
}

SWITCH_STATUS: Final[Mapping[int, tuple[str, str]]] = {
    -8001: ("PARAMETER", "invalid parameter"),
    -8002: ("LOG", "its log cannot be opened"),
    -8003: ("MEMORY", "out of memory"),
    -8004: ("DEVICE_OPEN", "its device cannot be opened"),
    -8005: ("IOCTL", "ioctl failed"),
    -8006: ("LOCK", "a lock cannot be taken"),
    -8007: ("THREAD", "a thread cannot be started"),
    -8008: ("VERSION", "library and kernel driver have different versions"),
    -8009: ("NOT_INITIALISED", "not initialised"),
    -8010: ("PROCESSES", "too many processes use it"),
    -8011: ("MMAP", "mmap failed"),
    -8012: ("MEMSET", "memset failed"),
    -8013: ("MEMCPY", "memcpy failed"),
    -8014: ("SUBSCRIPTIONS", "too many subscriptions"),
    -8015: ("FILTER", "invalid filter"),
    -8016: ("UNSUBSCRIBE", "unsubscribing failed"),
    -8017: ("INITIALISED_TWICE", "initialised twice"),
    SYMBOL_MISSING: ("SYMBOL_MISSING", "the library has no such function"),
}


class VendorCallFailed(CallFailed):
    """``status`` is as the library gave it; ``errno`` its absolute value: the wire has no negative ones."""

    def __init__(self, function: str, status: int, meanings: Mapping[int, tuple[str, str]]) -> None:
        name, meaning = meanings.get(status, ("UNKNOWN", "a code that the vendor does not document"))
        super().__init__(f"{function}: {meaning} ({name}, {status})", errno=abs(status))
        self.function = function
        self.status = status


class NotSupported(VendorCallFailed):
    """This chip, or this version of the library, cannot answer that: asking again is of no use."""


class NotReady(VendorCallFailed):
    """The chip is not there for now: dropped from the bus, or starting after a reset."""


class ImpossibleValue(CallFailed):
    """The library answered with what cannot be, such as a negative count."""


def failure(function: str, status: int) -> VendorCallFailed:
    """The failure of a function of libdcmi."""
    if status in (NOT_SUPPORTED, SYMBOL_MISSING):
        return NotSupported(function, status, DCMI_STATUS)
    if status == NOT_READY:
        return NotReady(function, status, DCMI_STATUS)
    return VendorCallFailed(function, status, DCMI_STATUS)


def switch_failure(function: str, status: int) -> VendorCallFailed:
    """The failure of a function of liblingqu-dcmi, whose numbers mean other things."""
    return VendorCallFailed(function, status, SWITCH_STATUS)


def check_count(what: str, count: int, limit: int) -> None:
    if not 0 <= count <= limit:
        raise ImpossibleValue(f"{what} is given as {count}; it must be 0 to {limit}")


Function = Callable[..., int]

_INT: Final = POINTER(c_int)
_UINT: Final = POINTER(c_uint)


class DcmiGeneration(Enum):
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

    def symbol(self, generation: DcmiGeneration) -> str:
        return self.v1 if generation is DcmiGeneration.V1 else self.v2

    def prototype(self, generation: DcmiGeneration) -> tuple[Any, ...]:
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
    "current_events": _both("get_device_current_fault_event", POINTER(DcmiEvent), c_int, _INT),
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


def bind_chip_calls(library: ctypes.CDLL, generation: DcmiGeneration) -> dict[str, Function]:
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


MAX_CODES: Final = 128
MAX_PROCESSES: Final = 64
"""The library writes so many, however little room the caller names (``dcmi_get_npu_proc_mem_info``)."""

MAX_CORES: Final = 128

TASK_SCHEDULER: Final = 11
"""``DCMI_MAIN_CMD_TS``."""

LIST_TRIES: Final = 3


class DcmiChip:
    """Each call raises ``CallFailed``: the library's answer, or ``ImpossibleValue``. For one thread at a
    time: it reuses its memory.
    """

    def __init__(
        self, functions: dict[str, Function], generation: DcmiGeneration, address: tuple[int, ...]
    ) -> None:
        self._functions = functions
        self._generation = generation
        self._address = address
        self._signed, self._unsigned = c_int(), c_uint()
        self._structures: dict[type[ctypes.Structure], ctypes.Structure] = {}
        self._codes = (c_uint * (MAX_CODES * 2))()
        self._cores = (c_ubyte * MAX_CORES)()
        self._without_core_use: set[int] = set()
        self._processes = (ProcessMemory * (MAX_PROCESSES * 2))()

    @property
    def generation(self) -> DcmiGeneration:
        return self._generation

    def call(self, name: str, *arguments: Any) -> None:
        """``name`` as in ``CHIP_CALLS``."""
        function = self._functions.get(name)
        call = CHIP_CALLS[name]
        if function is None:
            raise failure(call.symbol(self._generation) or call.v1 or call.v2, SYMBOL_MISSING)
        whole_card = call.by_card and self._generation is DcmiGeneration.V1
        if status := function(*(self._address[:1] if whole_card else self._address), *arguments):
            raise failure(call.symbol(self._generation), status)

    def signed(self, name: str, *selectors: int) -> int:
        """What a call leaves in its last argument, an ``int *``."""
        self._signed.value = NO_NUMBER
        self.call(name, *selectors, byref(self._signed))
        return self._signed.value

    def unsigned(self, name: str, *selectors: int) -> int:
        """What a call leaves in its last argument, an ``unsigned int *``."""
        self._unsigned.value = UNWRITTEN
        self.call(name, *selectors, byref(self._unsigned))
        return self._unsigned.value

    def structure(self, name: str, form: type[Structure], *selectors: int) -> Structure:
        """What a call fills; valid until this is asked of the same ``form`` again."""
        filled = self._cleared(form)
        self.call(name, *selectors, byref(filled))
        return filled

    def info(self, form: type[Structure], main: int, sub: int) -> Structure:
        """What ``get_device_info`` fills. Raises ``ImpossibleValue`` if it filled less."""
        filled = self._cleared(form)
        size = c_uint(ctypes.sizeof(form))
        self.call("info", main, sub, byref(filled), byref(size))
        if size.value < ctypes.sizeof(form):
            raise ImpossibleValue(
                f"get_device_info {main}/{sub} gave {size.value} bytes of {ctypes.sizeof(form)}"
            )
        return filled

    def core_use(self, kind: int) -> bytes:
        """A byte for each AI core (``kind`` 0) or vector core (1): percent, or above 100 what is the matter
        with it; nothing if the product has no such value, which is asked once.
        """
        if kind in self._without_core_use:
            return b""
        size = c_uint(ctypes.sizeof(self._cores))
        try:
            self.call("info", TASK_SCHEDULER, kind, byref(self._cores), byref(size))
        except NotSupported:
            self._without_core_use.add(kind)
            return b""
        check_count("the number of cores", size.value, MAX_CORES)
        return bytes(self._cores[: size.value])

    def error_codes(self) -> tuple[Sequence[int], bool]:
        """The codes active now, and whether the list was filled to its end, so that there may be more."""
        count = c_int(-1)
        self.call("error_codes", byref(count), self._codes, MAX_CODES)
        check_count("the number of error codes", count.value, MAX_CODES)
        return self._codes[: count.value], count.value == MAX_CODES

    def current_events(self) -> Sequence[FaultEvent]:
        """The faults active now, with their severity."""
        events = (DcmiEvent * MAX_CODES)()
        count = c_int(-1)
        self.call("current_events", events, MAX_CODES, byref(count))
        check_count("the number of fault events", count.value, MAX_CODES)
        return [event.event_t for event in events[: count.value] if event.type == HANDLED_EVENT]

    def processes(self) -> Sequence[int]:
        """The ids of the processes on the chip. The library asks for the memory of each, and fails over one
        that has just ended, as not supported (``dms_get_process_memory`` of the kernel's dms_process_info.c):
        so the list is asked for again before it counts as a failure.
        """
        count = c_int()
        for tries_left in reversed(range(LIST_TRIES)):
            count.value = MAX_PROCESSES
            try:
                self.call("processes", self._processes, byref(count))
                break
            except NotReady:
                raise
            except VendorCallFailed:
                if not tries_left:
                    raise
        check_count("the number of processes", count.value, MAX_PROCESSES)
        return [process.proc_id for process in self._processes[: count.value]]

    def _cleared(self, form: type[Structure]) -> Structure:
        filled = self._structures.get(form)
        if not isinstance(filled, form):
            filled = self._structures[form] = with_room(form)
        ctypes.memset(byref(filled), 0, ctypes.sizeof(form))
        return filled
