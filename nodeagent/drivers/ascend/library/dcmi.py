"""libdcmi.so behind one small interface: the library, the places where chips sit, and the calls on a chip.

Whatever the library writes is taken with care: counts are checked against the room that was given,
structures have room to spare, texts may lack their end. It keeps nothing between calls, retries only the
list of processes, and knows no device name. A ``Chip`` is used by one thread at a time, for it reuses its
memory.
"""

import ctypes
from collections.abc import Callable, Sequence
from ctypes import byref, c_int, c_ubyte, c_uint
from dataclasses import dataclass
from typing import Any, Final

from nodeagent.drivers.api import Unavailable
from nodeagent.drivers.ascend.library.abi import (
    Event,
    EventFilter,
    FaultCallback,
    FaultEvent,
    ProcessMemory,
    Structure,
    text,
    with_room,
)
from nodeagent.drivers.ascend.library.errors import (
    NOT_SUPPORTED,
    SYMBOL_MISSING,
    Nonsense,
    NotReady,
    NotSupported,
    VendorCallFailed,
    failure,
)
from nodeagent.drivers.ascend.library.functions import (
    CHIP_CALLS,
    Function,
    Generation,
    bind_chip_calls,
    bind_library_calls,
)
from nodeagent.drivers.ascend.library.loading import load

LIBRARY_NAME: Final = "libdcmi.so"

MAX_CARDS: Final = 64
MAX_DEVICES_PER_CARD: Final = 4
"""NPUs, and on some boards an MCU and a CPU behind them."""
MAX_CODES: Final = 128
MAX_PROCESSES: Final = 64
"""The library writes so many, however little room the caller names (``dcmi_get_npu_proc_mem_info``)."""

MAX_CORES: Final = 128

TASK_SCHEDULER: Final = 11
"""``DCMI_MAIN_CMD_TS``."""

LIST_TRIES: Final = 3
VERSION_BYTES: Final = 64

NPU: Final = 0
"""``NPU_TYPE`` of ``dcmi_unit_type``; a card's MCU and CPU have device ids of their own."""

HANDLED_EVENT: Final = 0
"""``DCMI_DMS_FAULT_EVENT``, the one event type there is."""

_INITIALISES: Final = {Generation.V1: "dcmi_init", Generation.V2: "dcmiv2_init"}
_UNWRITTEN: Final = 0xFFFFFFFE
_NO_NUMBER: Final = -(2**31)
"""Stand where the library is to write, so that what it leaves alone is refused and not taken for a value. All
ones are what the library itself writes for what it does not know.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a chip is found now.

    ``address`` is what its calls begin with, ``logic`` what events name it by, ``physical`` its number among
    all chips of the machine. On a 950, which has no cards, ``card`` is the device's own number.
    """

    address: tuple[int, ...]
    card: int
    logic: int
    physical: int


class Library:
    """The library, opened and initialised, in whichever generation it speaks of its chips."""

    def __init__(self, handle: ctypes.CDLL) -> None:
        """Raises ``Unavailable`` with the answer of its ``init``."""
        self._handle = handle
        self._functions = bind_library_calls(handle)
        self.generation = self._initialise()
        self._chip_functions = bind_chip_calls(handle, self.generation)
        self._callback: Any = None

    def chip(self, place: Place) -> "Chip":
        return Chip(self._chip_functions, self.generation, place.address)

    def places(self, card: int) -> list[Place]:
        """The NPUs of the card, without the MCU and CPU beside them. Raises ``CallFailed``."""
        if self.generation is Generation.V1:
            return self._places_on(card)
        return [self._place_v2(card)] if self._is_npu((card,)) else []

    def initialise_again(self) -> None:
        """Judges anew what the driver showed this process at first: one that had not started then is listed
        once it has. Others may be missing from the list meanwhile, so only the process of a reset does it.
        Raises ``CallFailed``: what is listed now is not known.
        """
        self._call(_INITIALISES[self.generation])

    def cards(self) -> list[int]:
        """The ids of the cards, or of the devices where there are no cards; a card that could not be read has
        none. Cheap. Raises ``CallFailed``.
        """
        count, listed = c_int(-1), (c_int * MAX_CARDS)()
        if self.generation is Generation.V1:
            self._call("dcmi_get_card_list", byref(count), listed, MAX_CARDS)
        else:
            self._call("dcmiv2_get_device_list", listed, byref(count), MAX_CARDS)
        _check_count("the number of cards", count.value, MAX_CARDS)
        return [card for card in listed[: count.value] if card >= 0]

    def driver_version(self) -> str:
        """Raises ``CallFailed``."""
        version = ctypes.create_string_buffer(VERSION_BYTES + 1)
        prefix = "dcmi" if self.generation is Generation.V1 else "dcmiv2"
        self._call(f"{prefix}_get_driver_version", version, VERSION_BYTES)
        return text(version.raw)

    def subscribe(self, handler: Callable[[Any], None]) -> None:
        """Have every fault event of every chip given to ``handler``, on a thread of the library's, for as
        long as the process lives: there is no way to unsubscribe. Once, also if it fails. Raises
        ``CallFailed``.
        """
        # Kept for good, also when it fails: nobody knows what the library has kept of it.
        callback = self._callback = FaultCallback(handler)
        if self.generation is Generation.V1:
            self._call("dcmi_subscribe_fault_event", -1, -1, EventFilter(), callback)
        else:
            self._call("dcmiv2_subscribe_fault_event", -1, EventFilter(), callback)

    # ------------------------------------------------------------------ in pieces

    def _initialise(self) -> Generation:
        """Of both generations the one whose chips the library knows; v1 answers "not supported" on a 950."""
        refused: list[VendorCallFailed] = []
        for generation, symbol in _INITIALISES.items():
            try:
                self._call(symbol)
            except VendorCallFailed as error:
                refused.append(error)
            else:
                return generation
        failure = next(
            (error for error in refused if error.status not in (NOT_SUPPORTED, SYMBOL_MISSING)), refused[0]
        )
        raise Unavailable(str(failure), errno=failure.errno) from failure

    def _call(self, symbol: str, *arguments: Any) -> None:
        function = self._functions.get(symbol)
        if function is None:
            raise failure(symbol, SYMBOL_MISSING)
        if status := function(*arguments):
            raise failure(symbol, status)

    def _places_on(self, card: int) -> list[Place]:
        count = c_int(-1)
        self._call("dcmi_get_device_num_in_card", card, byref(count))
        _check_count(f"the number of devices on card {card}", count.value, MAX_DEVICES_PER_CARD)
        return [self._place_v1(card, n) for n in range(count.value) if self._is_npu((card, n))]

    def _place_v1(self, card: int, device: int) -> Place:
        logic, physical = c_int(-1), c_uint(_UNWRITTEN)
        self._call("dcmi_get_device_logic_id", byref(logic), card, device)
        _check_count(
            f"the logic id of card {card} device {device}", logic.value, MAX_CARDS * MAX_DEVICES_PER_CARD
        )
        self._call("dcmi_get_device_phyid_from_logicid", logic.value, byref(physical))
        return _place((card, device), card, logic.value, physical.value)

    def _place_v2(self, device: int) -> Place:
        physical = c_uint(_UNWRITTEN)
        self._call("dcmiv2_get_chip_phy_id_by_dev_id", device, byref(physical))
        return _place((device,), device, device, physical.value)

    def _is_npu(self, address: tuple[int, ...]) -> bool:
        """Where the library cannot say of what type a device is, it lists NPUs only."""
        function = self._chip_functions.get("type")
        kind = c_int(NPU)
        status = function(*address, byref(kind)) if function else NOT_SUPPORTED
        if status not in (0, NOT_SUPPORTED):
            raise failure(CHIP_CALLS["type"].symbol(self.generation), status)
        return kind.value == NPU


class Chip:
    """The calls on one chip. Each raises ``CallFailed``: the library's answer, or ``Nonsense``."""

    def __init__(
        self, functions: dict[str, Function], generation: Generation, address: tuple[int, ...]
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

    def call(self, name: str, *arguments: Any) -> None:
        """``name`` as in ``functions.CHIP_CALLS``."""
        function = self._functions.get(name)
        call = CHIP_CALLS[name]
        if function is None:
            raise failure(call.symbol(self._generation) or call.v1 or call.v2, SYMBOL_MISSING)
        whole_card = call.by_card and self._generation is Generation.V1
        if status := function(*(self._address[:1] if whole_card else self._address), *arguments):
            raise failure(call.symbol(self._generation), status)

    def signed(self, name: str, *selectors: int) -> int:
        """What a call leaves in its last argument, an ``int *``."""
        self._signed.value = _NO_NUMBER
        self.call(name, *selectors, byref(self._signed))
        return self._signed.value

    def unsigned(self, name: str, *selectors: int) -> int:
        """What a call leaves in its last argument, an ``unsigned int *``."""
        self._unsigned.value = _UNWRITTEN
        self.call(name, *selectors, byref(self._unsigned))
        return self._unsigned.value

    def structure(self, name: str, form: type[Structure], *selectors: int) -> Structure:
        """What a call fills; valid until this is asked of the same ``form`` again."""
        filled = self._cleared(form)
        self.call(name, *selectors, byref(filled))
        return filled

    def info(self, form: type[Structure], main: int, sub: int) -> Structure:
        """What ``get_device_info`` fills. Raises ``Nonsense`` if it says that it filled less."""
        filled = self._cleared(form)
        size = c_uint(ctypes.sizeof(form))
        self.call("info", main, sub, byref(filled), byref(size))
        if size.value < ctypes.sizeof(form):
            raise Nonsense(f"get_device_info {main}/{sub} gave {size.value} bytes of {ctypes.sizeof(form)}")
        return filled

    def core_use(self, kind: int) -> bytes:
        """A byte for each AI core (``kind`` 0) or vector core (1): percent, or above 100 what is the matter
        with it; nothing where the product does not say, which is asked once.
        """
        if kind in self._without_core_use:
            return b""
        size = c_uint(ctypes.sizeof(self._cores))
        try:
            self.call("info", TASK_SCHEDULER, kind, byref(self._cores), byref(size))
        except NotSupported:
            self._without_core_use.add(kind)
            return b""
        _check_count("the number of cores", size.value, MAX_CORES)
        return bytes(self._cores[: size.value])

    def error_codes(self) -> tuple[Sequence[int], bool]:
        """The codes active now, and whether the list was filled to its end, so that there may be more."""
        count = c_int(-1)
        self.call("error_codes", byref(count), self._codes, MAX_CODES)
        _check_count("the number of error codes", count.value, MAX_CODES)
        return self._codes[: count.value], count.value == MAX_CODES

    def current_events(self) -> Sequence[FaultEvent]:
        """The faults active now, with their severity."""
        events = (Event * MAX_CODES)()
        count = c_int(-1)
        self.call("current_events", events, MAX_CODES, byref(count))
        _check_count("the number of fault events", count.value, MAX_CODES)
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
        _check_count("the number of processes", count.value, MAX_PROCESSES)
        return [process.proc_id for process in self._processes[: count.value]]

    def _cleared(self, form: type[Structure]) -> Structure:
        filled = self._structures.get(form)
        if not isinstance(filled, form):
            filled = self._structures[form] = with_room(form)
        ctypes.memset(byref(filled), 0, ctypes.sizeof(form))
        return filled


def open_library(configured: str = "") -> Library:
    """Raises ``Unavailable``."""
    return Library(load(LIBRARY_NAME, configured))


def _check_count(what: str, count: int, limit: int) -> None:
    if not 0 <= count <= limit:
        raise Nonsense(f"{what} is given as {count}; it must be 0 to {limit}")


def _place(address: tuple[int, ...], card: int, logic: int, physical: int) -> Place:
    _check_count(f"the physical id of {address}", physical, MAX_CARDS * MAX_DEVICES_PER_CARD)
    return Place(address=address, card=card, logic=logic, physical=physical)
