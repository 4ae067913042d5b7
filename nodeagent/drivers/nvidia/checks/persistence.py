"""Whether the driver keeps a GPU initialised while nobody has it open: persistence mode.

It is off unless nvidia-persistenced or ``nvidia-smi -pm 1`` switched it on (nvmlDeviceGetPersistenceMode in
nvml.h). It switches nothing.
"""

from typing import Final

import pynvml

from nodeagent.drivers.nvidia.calls import Calls, Readings

OFF: Final = "NV_PERSISTENCE_OFF"
PERSISTENCE_CODES: Final = frozenset({OFF})


def read(calls: Calls, readings: Readings) -> list[str] | None:
    """The codes that are active, None where that is unknown. Raises as ``Calls.ask``."""
    mode = calls.ask(pynvml.nvmlDeviceGetPersistenceMode)
    readings.put("persistence_mode", mode, most=1)
    if mode is None:
        return None
    return [OFF] if mode == pynvml.NVML_FEATURE_DISABLED else []
