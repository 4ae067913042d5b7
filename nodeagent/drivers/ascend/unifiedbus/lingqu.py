"""liblingqu-dcmi.so: the UnifiedBus switches of an Atlas A3, loaded, subscribed to and asked for all faults.

It gives the library's own structures, copied, and checks its counts. It knows no device name and no code.
"""

import ctypes
from collections.abc import Callable, Sequence
from ctypes import POINTER, byref, c_uint
from pathlib import Path
from typing import Any, Final

from nodeagent.drivers.api import Unavailable
from nodeagent.drivers.ascend.library.abi import SwitchCallback, SwitchEvent, SwitchFilter
from nodeagent.drivers.ascend.library.errors import SYMBOL_MISSING, Nonsense, VendorCallFailed, switch_failure
from nodeagent.drivers.ascend.library.functions import Function, bind
from nodeagent.drivers.ascend.library.loading import load

LIBRARY_NAME: Final = "liblingqu-dcmi.so"

MAX_FAULTS: Final = 1024
"""Seven chips with 48 ports make 343 places; MindCluster's 128 could be filled by one bad plane."""

DEVICE_NODE: Final = Path("/dev/lqdcmi_pcidev")
"""Only a machine with such switches has it; the library may be installed on any."""

_DEVICE_OPEN: Final = -8004
_INITIALISED_TWICE: Final = -8017

PROTOTYPES: Final[dict[str, tuple[Any, ...]]] = {
    "lq_dcmi_init": (),
    "lq_dcmi_subscribe_fault_event": (SwitchFilter, SwitchCallback),
    "lq_dcmi_get_fault_info": (c_uint, POINTER(c_uint), POINTER(SwitchEvent)),
}


class SwitchLibrary:
    """Opened and initialised."""

    def __init__(self, handle: ctypes.CDLL) -> None:
        """Raises ``Unavailable``; ``absent`` where the machine has no such switches."""
        self._functions: dict[str, Function] = {}
        for symbol, prototype in PROTOTYPES.items():
            if (function := bind(handle, symbol, prototype)) is not None:
                self._functions[symbol] = function
        self._callback: Any = None
        self._faults = (SwitchEvent * MAX_FAULTS)()
        try:
            self._call("lq_dcmi_init")
        except VendorCallFailed as error:
            if error.status != _INITIALISED_TWICE:
                absent = error.status == _DEVICE_OPEN and not DEVICE_NODE.exists()
                raise Unavailable(str(error), errno=error.errno, absent=absent) from error

    def subscribe(self, handler: Callable[[Any], None]) -> None:
        """Have every event given to ``handler`` on the library's thread, for good. Once more only if it
        failed, with the same handler. Raises ``CallFailed``.
        """
        self._callback = self._callback or SwitchCallback(handler)
        self._call("lq_dcmi_subscribe_fault_event", SwitchFilter(), self._callback)

    def faults(self) -> tuple[Sequence[SwitchEvent], bool]:
        """All faults there are, and whether the list was filled to its end. Raises ``CallFailed``."""
        count = c_uint(0xFFFFFFFF)
        self._call("lq_dcmi_get_fault_info", MAX_FAULTS, byref(count), self._faults)
        if count.value > MAX_FAULTS:
            raise Nonsense(f"the number of switch faults is given as {count.value}; at most {MAX_FAULTS} fit")
        return self._faults[: count.value], count.value == MAX_FAULTS

    def _call(self, symbol: str, *arguments: Any) -> None:
        function = self._functions.get(symbol)
        if function is None:
            raise switch_failure(symbol, SYMBOL_MISSING)
        if status := function(*arguments):
            raise switch_failure(symbol, status)


def open_library(configured: str = "") -> SwitchLibrary:
    """Raises ``Unavailable``."""
    return SwitchLibrary(load(LIBRARY_NAME, configured))
