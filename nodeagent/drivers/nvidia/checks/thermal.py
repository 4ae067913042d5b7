"""How far a GPU and its memory are above the temperature from which they are slowed.

Drivers give that temperature (nvmlDeviceGetTemperatureThreshold in nvml.h). From Ada on they give margins
too, which are to take its place: how far the GPU is from its limits (nvmlDeviceGetMarginTemperature), and at
which of these margins it is slowed (the fields NVML_FI_DEV_TEMPERATURE_*_TLIMIT). The temperature goes first
where there is one: some H100 give a margin of zero or less and are not hot (``Check`` in
components/accelerator/nvidia/temperature of gpud). Memory has no margin. It judges nothing.
"""

from collections.abc import Mapping
from typing import Final

import pynvml

from nodeagent.drivers.nvidia.calls import Calls, Readings

_LIMITS: Final[Mapping[str, int]] = {
    "gpu": pynvml.NVML_TEMPERATURE_THRESHOLD_GPU_MAX,
    "memory": pynvml.NVML_TEMPERATURE_THRESHOLD_MEM_MAX,
}
_TEMPERATURES: Final[Mapping[str, str]] = {
    "gpu": "temperature_celsius",
    "memory": "temperature_celsius.memory",
}

_COOLEST: Final = 60.0
_HOTTEST: Final = 150.0
"""No part of a GPU is slowed for its heat below the one, nor has its limit above the other."""


class Thermal:
    """The temperatures of one GPU."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._limits: dict[str, float] = {}

    def read(self, readings: Readings) -> None:
        """Fill them in, from temperatures and margins that are there already. Raises as ``Calls.ask``."""
        for part, temperature in _TEMPERATURES.items():
            now = readings.values.get(temperature)
            limit = self._limit(part)
            if limit is None and part == "gpu":
                limit = _by_margin(readings.values, now)
            if now is not None and limit is not None:
                readings.put(
                    f"temperature_excess_celsius.{part}", now - limit, least=-_HOTTEST, most=_HOTTEST
                )

    def _limit(self, part: str) -> float | None:
        """It does not change: it is asked until it is known."""
        number = _LIMITS[part]
        if part not in self._limits:
            limit = self._calls.ask(pynvml.nvmlDeviceGetTemperatureThreshold, number, variant=(number,))
            if limit is not None and _COOLEST <= limit <= _HOTTEST:
                self._limits[part] = float(limit)
        return self._limits.get(part)


def _by_margin(values: Mapping[str, float], now: float | None) -> float | None:
    """The temperature at which the GPU is slowed; None where a margin is missing or makes no sense."""
    margin = values.get("temperature_margin_celsius")
    slowed_at = values.get("temperature_limit_celsius.gpu")
    if now is None or margin is None or slowed_at is None:
        return None
    limit = now + margin - slowed_at
    return limit if _COOLEST <= limit <= _HOTTEST else None
