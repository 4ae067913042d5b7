"""libdcmi.so behind one small interface: the library itself, and where it finds each chip.

Values that the library writes are checked: a count against the space that was given, a text for its end. This
module keeps nothing between calls, repeats no call, and knows no device name.
"""

import ctypes
from collections.abc import Callable
from ctypes import byref, c_int, c_uint
from dataclasses import dataclass
from typing import Any, Final

from nodeagent.drivers.api import Unavailable
from nodeagent.drivers.ascend.abi import UNWRITTEN, EventFilter, FaultCallback, text
from nodeagent.drivers.ascend.dcmi_calls import (
    CHIP_CALLS,
    NOT_SUPPORTED,
    SYMBOL_MISSING,
    DcmiChip,
    DcmiGeneration,
    VendorCallFailed,
    bind_chip_calls,
    bind_library_calls,
    check_count,
    failure,
)
from nodeagent.drivers.ascend.opening import load

LIBRARY_NAME: Final = "libdcmi.so"

MAX_CARDS: Final = 64
MAX_DEVICES_PER_CARD: Final = 4
"""NPUs, and on some boards an MCU and a CPU behind them."""
VERSION_BYTES: Final = 64

NPU: Final = 0
"""``NPU_TYPE`` of ``dcmi_unit_type``; a card's MCU and CPU have device ids of their own."""

_INITIALISES: Final = {DcmiGeneration.V1: "dcmi_init", DcmiGeneration.V2: "dcmiv2_init"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipPlace:
    """Where a chip is found now.

    ``address`` is what its calls begin with, ``logic`` what events name it by, ``physical`` its number among
    all chips of the machine. On a 950, which has no cards, ``card`` is the device's own number.
    """

    address: tuple[int, ...]
    card: int
    logic: int
    physical: int


class DcmiLibrary:
    """The library, opened and initialised, in whichever generation it speaks of its chips."""

    def __init__(self, handle: ctypes.CDLL) -> None:
        """Raises ``Unavailable`` with the answer of its ``init``."""
        self._handle = handle
        self._functions = bind_library_calls(handle)
        self.generation = self._initialise()
        self._chip_functions = bind_chip_calls(handle, self.generation)
        self._callback: Any = None

    def chip(self, place: ChipPlace) -> DcmiChip:
        return DcmiChip(self._chip_functions, self.generation, place.address)

    def places(self, card: int) -> list[ChipPlace]:
        """The NPUs of the card, without its MCU and CPU. Raises ``CallFailed``."""
        if self.generation is DcmiGeneration.V1:
            return self._places_on(card)
        return [self._place_v2(card)] if self._is_npu((card,)) else []

    def initialise_again(self) -> None:
        """Reads the chips of the driver again: one that had not started before is listed once it has. Others
        may be missing from the list meanwhile, so only the process of a reset does it. Raises ``CallFailed``:
        what is listed now is not known.
        """
        self._call(_INITIALISES[self.generation])

    def cards(self) -> list[int]:
        """The ids of the cards, or of the devices where there are no cards; a card that could not be read has
        none. Cheap. Raises ``CallFailed``.
        """
        count, listed = c_int(-1), (c_int * MAX_CARDS)()
        if self.generation is DcmiGeneration.V1:
            self._call("dcmi_get_card_list", byref(count), listed, MAX_CARDS)
        else:
            self._call("dcmiv2_get_device_list", listed, byref(count), MAX_CARDS)
        check_count("the number of cards", count.value, MAX_CARDS)
        return [card for card in listed[: count.value] if card >= 0]

    def driver_version(self) -> str:
        """Raises ``CallFailed``."""
        version = ctypes.create_string_buffer(VERSION_BYTES + 1)
        prefix = "dcmi" if self.generation is DcmiGeneration.V1 else "dcmiv2"
        self._call(f"{prefix}_get_driver_version", version, VERSION_BYTES)
        return text(version.raw)

    def subscribe(self, handler: Callable[[Any], None]) -> None:
        """Have every fault event of every chip given to ``handler``, on a thread of the library's, for as
        long as the process lives: there is no way to unsubscribe. Once, also if it fails. Raises
        ``CallFailed``.
        """
        # Kept for good, also when it fails: the library may have kept a pointer to it.
        callback = self._callback = FaultCallback(handler)
        if self.generation is DcmiGeneration.V1:
            self._call("dcmi_subscribe_fault_event", -1, -1, EventFilter(), callback)
        else:
            self._call("dcmiv2_subscribe_fault_event", -1, EventFilter(), callback)

    # ------------------------------------------------------------------ in pieces

    def _initialise(self) -> DcmiGeneration:
        """Choose the generation of calls by which the library shows chips; v1 answers "not supported" on a
        950.
        """
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

    def _places_on(self, card: int) -> list[ChipPlace]:
        count = c_int(-1)
        self._call("dcmi_get_device_num_in_card", card, byref(count))
        check_count(f"the number of devices on card {card}", count.value, MAX_DEVICES_PER_CARD)
        return [self._place_v1(card, n) for n in range(count.value) if self._is_npu((card, n))]

    def _place_v1(self, card: int, device: int) -> ChipPlace:
        logic, physical = c_int(-1), c_uint(UNWRITTEN)
        self._call("dcmi_get_device_logic_id", byref(logic), card, device)
        check_count(
            f"the logic id of card {card} device {device}", logic.value, MAX_CARDS * MAX_DEVICES_PER_CARD
        )
        self._call("dcmi_get_device_phyid_from_logicid", logic.value, byref(physical))
        return _place((card, device), card, logic.value, physical.value)

    def _place_v2(self, device: int) -> ChipPlace:
        physical = c_uint(UNWRITTEN)
        self._call("dcmiv2_get_chip_phy_id_by_dev_id", device, byref(physical))
        return _place((device,), device, device, physical.value)

    def _is_npu(self, address: tuple[int, ...]) -> bool:
        """A library that does not know the type of a device lists NPUs only."""
        function = self._chip_functions.get("type")
        kind = c_int(NPU)
        status = function(*address, byref(kind)) if function else NOT_SUPPORTED
        if status not in (0, NOT_SUPPORTED):
            raise failure(CHIP_CALLS["type"].symbol(self.generation), status)
        return kind.value == NPU


def open_library(configured: str = "") -> DcmiLibrary:
    """Raises ``Unavailable``."""
    return DcmiLibrary(load(LIBRARY_NAME, configured))


def _place(address: tuple[int, ...], card: int, logic: int, physical: int) -> ChipPlace:
    check_count(f"the physical id of {address}", physical, MAX_CARDS * MAX_DEVICES_PER_CARD)
    return ChipPlace(address=address, card=card, logic=logic, physical=physical)
