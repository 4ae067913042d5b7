"""Whether the InfoROM of a GPU, the small memory that holds its board's records, is sound.

NVML reads it from the flash and compares checksums (nvmlDeviceValidateInforom in nvml.h). That is slow, and
the records hardly ever change: DCGM asks once an hour (``SetInforom`` in modules/health/DcgmHealthWatch.cpp),
and so does this, beside the start. In between the last answer holds. It repairs nothing.
"""

import time
from collections.abc import Callable
from typing import Any, Final

import pynvml

from nodeagent.drivers.nvidia.calls import Calls, Readings

CORRUPT: Final = "NV_INFOROM_CORRUPT"
INFOROM_CODES: Final = frozenset({CORRUPT})
EACH_S: Final = 3600.0


class Inforom:
    """Of one GPU. ``now_s`` is a clock that does not step."""

    def __init__(self, calls: Calls, now_s: Callable[[], float] = time.monotonic) -> None:
        self._calls = calls
        self._now_s = now_s
        self._due_s = 0.0
        self._codes: list[str] = []

    def read(self, _: Readings) -> list[str]:
        """The codes that are active. One that failed is asked again at once. Raises as ``Calls.ask``."""
        if self._now_s() >= self._due_s:
            is_valid = self._calls.ask(_inforom_is_valid)
            if is_valid is not None:
                self._due_s = self._now_s() + EACH_S
                self._codes = [] if is_valid else [CORRUPT]
        return self._codes


def _inforom_is_valid(handle: Any) -> bool:
    try:
        pynvml.nvmlDeviceValidateInforom(handle)
    except pynvml.NVMLError as error:
        if error.value != pynvml.NVML_ERROR_CORRUPTED_INFOROM:
            raise
        return False
    return True
