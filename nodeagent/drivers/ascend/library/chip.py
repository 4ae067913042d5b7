"""The calls on one chip, by libdcmi.so.

Whatever the library writes is taken with care: counts are checked against the room that was given, structures
have room to spare. It retries only the list of processes.
"""

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_int, c_ubyte, c_uint
from typing import Any, Final

from nodeagent.drivers.ascend.library.abi import (
    HANDLED_EVENT,
    NO_NUMBER,
    UNWRITTEN,
    Event,
    FaultEvent,
    ProcessMemory,
    Structure,
    with_room,
)
from nodeagent.drivers.ascend.library.errors import (
    SYMBOL_MISSING,
    Nonsense,
    NotReady,
    NotSupported,
    VendorCallFailed,
    check_count,
    failure,
)
from nodeagent.drivers.ascend.library.functions import CHIP_CALLS, Function, Generation

MAX_CODES: Final = 128
MAX_PROCESSES: Final = 64
"""The library writes so many, however little room the caller names (``dcmi_get_npu_proc_mem_info``)."""

MAX_CORES: Final = 128

TASK_SCHEDULER: Final = 11
"""``DCMI_MAIN_CMD_TS``."""

LIST_TRIES: Final = 3


class Chip:
    """Each call raises ``CallFailed``: the library's answer, or ``Nonsense``. For one thread at a time: it
    reuses its memory.
    """

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

    @property
    def generation(self) -> Generation:
        return self._generation

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
        events = (Event * MAX_CODES)()
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
