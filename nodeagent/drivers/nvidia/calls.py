"""Calls into NVML for one GPU: which answers are values, which are faults, and which are never asked again.

NVML answers each call with a number. What a device or its driver does not have (NOT_SUPPORTED,
FUNCTION_NOT_FOUND) is remembered by call, and not asked again of that device. What says something of the
whole GPU (it is lost, it must be reset) or of the whole driver becomes an exception. So does a call that
fails after it has hung: it held up those for all other GPUs meanwhile. Any other failure leaves its value
out. Nothing is retried, and nothing is judged.
"""

import math
import time
from collections.abc import Callable, Collection, Hashable
from typing import Any, Final

import pynvml

from nodeagent.drivers.api import CallFailed

NAMES: Final[dict[int, str]] = {
    value: name.removeprefix("NVML_ERROR_")
    for name, value in vars(pynvml).items()
    if name.startswith("NVML_ERROR_") and isinstance(value, int)
}
"""``str`` of an NVMLError may call into the library; these do not."""

UNSUPPORTED: Final = frozenset(
    {
        pynvml.NVML_ERROR_NOT_SUPPORTED,
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
        pynvml.NVML_ERROR_DEPRECATED,
    }
)
NOT_OF_THIS_GPU: Final = UNSUPPORTED | {pynvml.NVML_ERROR_INVALID_ARGUMENT}
"""What is asked for by its number, such as a link, may be one that this GPU does not have."""

FAULTS: Final[dict[int, str]] = {
    pynvml.NVML_ERROR_GPU_IS_LOST: "NV_GPU_LOST",
    pynvml.NVML_ERROR_RESET_REQUIRED: "NV_GPU_RESET_REQUIRED",
    pynvml.NVML_ERROR_NOT_READY: "NV_NOT_READY",
}
"""The codes for what NVML says of a GPU in place of a value."""

STALE: Final = frozenset(
    {
        pynvml.NVML_ERROR_UNINITIALIZED,
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
    }
)
"""After these no handle of the process is good any more."""

HUNG: Final = frozenset({pynvml.NVML_ERROR_TIMEOUT, pynvml.NVML_ERROR_UNKNOWN})
HANG_S: Final = 2.0
"""A call that fails so after so long has waited in vain for the GPU's own processor (GSP): 6 or 45 s, all
GPUs locked (``_kgspRpcRecvPoll`` in kernel_gsp.c of NVIDIA's open modules). Those that it held up succeed.
"""

Variant = tuple[Hashable, ...]


class GpuFault(Exception):
    """NVML says of the GPU itself that it is at fault; ``code`` is the fault's."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class DriverGone(CallFailed):
    """NVML says that there is no driver behind it any more, or another one; ``errno`` is its number."""


class GpuHung(CallFailed):
    """A call for this GPU failed after it had hung for ``took_s``."""

    def __init__(self, what: str, number: int, took_s: float) -> None:
        super().__init__(f"{what} hung for {took_s:.0f} s: {name_of(number)}", errno=number)
        self.took_s = took_s


def name_of(number: int) -> str:
    return NAMES.get(number, f"NVML error {number}")


class Calls:
    """The calls about one GPU, for one thread. ``turn`` begins a poll; the counts are those of the poll."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self.refused = 0
        self.answered = 0
        self.failed: list[str] = []
        self.failed_number = 0
        self._unsupported: set[Variant] = set()
        self._failing: set[Variant] = set()

    def turn(self) -> None:
        self.answered = 0
        self.failed = []
        self.failed_number = 0

    def ask(
        self,
        call: Callable[..., Any],
        *arguments: Any,
        variant: Variant = (),
        absent: Collection[int] = UNSUPPORTED,
    ) -> Any:
        """``call(handle, *arguments)``, or None where it has no value to give.

        ``variant`` distinguishes what may be supported separately, such as the links; ``absent`` are the
        answers by which it is not supported. Raises ``GpuFault``, ``GpuHung`` and ``DriverGone``.
        """
        key = (call, *variant)
        if key in self._unsupported:
            return None
        begun_s = time.monotonic()
        try:
            value = call(self.handle, *arguments)
        except pynvml.NVMLError as error:
            what, took_s = call.__name__.strip("_"), time.monotonic() - begun_s
            if took_s >= HANG_S and error.value in HUNG and key not in self._failing:
                raise GpuHung(what, error.value, took_s) from None
            self._failing.add(key)
            self.fail(what, error.value, key, absent)
            return None
        except UnicodeDecodeError:
            self.refused += 1
            self.answered += 1
            return None
        self.answered += 1
        self._failing.discard(key)
        return value

    def newest(self, *versions: tuple[Callable[..., Any], Callable[..., Any]]) -> Any:
        """The first of several versions of a call that the driver has, each with what reads its value.

        An older one is asked only where the newer is not there, not where it failed.
        """
        for call, read in versions:
            value = self.ask(call)
            if value is not None:
                return read(value)
            if not self.lacks(call):
                return None
        return None

    def lacks(self, call: Callable[..., Any], *variant: Hashable) -> bool:
        return (call, *variant) in self._unsupported

    def fail(self, what: str, number: int, key: Variant, absent: Collection[int] = UNSUPPORTED) -> None:
        """Take note of a failure. Raises ``GpuFault`` and ``DriverGone``."""
        if number in FAULTS:
            raise GpuFault(FAULTS[number])
        if number in STALE:
            raise DriverGone(f"{what}: {name_of(number)}", errno=number)
        if number in absent:
            self._unsupported.add(key)
            self.answered += 1
            return
        self.failed.append(f"{what}: {name_of(number)}")
        self.failed_number = number


class Readings:
    """Fills ``values``, the telemetry of one poll; what no GPU can mean is refused and counted."""

    def __init__(self, calls: Calls, values: dict[str, float]) -> None:
        self.values = values
        self._calls = calls

    def put(
        self, name: str, value: float | None, *, least: float = 0.0, most: float = 2.0**63, scale: float = 1.0
    ) -> None:
        """``value`` within its bounds, times ``scale``; None leaves the reading out."""
        if value is None:
            return
        if not (math.isfinite(value) and least <= value <= most):
            self._calls.refused += 1
            return
        self.values[name] = float(value) * scale
