"""Whether the InfoROM of a GPU, the small memory that holds its board's records, is sound.

NVML reads it from the flash and compares checksums (nvmlDeviceValidateInforom in nvml.h). That is slow, and
the records hardly ever change: DCGM asks once an hour (``SetInforom`` in modules/health/DcgmHealthWatch.cpp),
and so does this, beside the start. In between the last answer holds. It repairs nothing.
"""

import time
from collections.abc import Callable
from typing import Any, Final

import pynvml

from nodeagent.drivers.nvidia.cached import Cached
from nodeagent.drivers.nvidia.calls import Calls, Readings, asks

CORRUPT: Final = "NV_INFOROM_CORRUPT"
INFOROM_CODES: Final = frozenset({CORRUPT})
EACH_S: Final = 3600.0


class Inforom:
    """The inforom of one GPU. ``now_s`` is a clock that does not step."""

    def __init__(self, calls: Calls, now_s: Callable[[], float] = time.monotonic) -> None:
        self._calls = calls
        self._is_valid = Cached(lambda: _answer(calls), EACH_S, now_s)

    def read(self, _: Readings) -> list[str] | None:
        """The codes that are active, None where that is unknown. Raises as ``Calls.ask``."""
        is_valid = self._is_valid.get()
        if self._calls.is_lost(_inforom_is_valid):
            return None
        return [CORRUPT] if is_valid is False else []


def _answer(calls: Calls) -> bool | None:
    is_valid: bool | None = calls.ask(_inforom_is_valid)
    return is_valid


@asks("nvmlDeviceValidateInforom")
def _inforom_is_valid(handle: Any) -> bool:
    try:
        pynvml.nvmlDeviceValidateInforom(handle)
    except pynvml.NVMLError as error:
        if error.value != pynvml.NVML_ERROR_CORRUPTED_INFOROM:
            raise
        return False
    return True
