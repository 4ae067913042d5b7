"""How hot a GPU and its memory are, and for how many minutes the GPU was slowed down.

**Temperature.** Drivers report the temperature from which a GPU is slowed (nvmlDeviceGetTemperatureThreshold
in nvml.h). From Ada on they report margins instead: how far the GPU is from its limits
(nvmlDeviceGetMarginTemperature), and at which of these margins it is slowed (the fields
NVML_FI_DEV_TEMPERATURE_*_TLIMIT). A temperature is preferred if there is one: some H100 report a margin of
zero or less and are not hot (``Check`` in components/accelerator/nvidia/temperature of gpud). Memory has no
margin.

**Slowdown.** The bits are those of nvmlClocksEventReasons in nvml.h. The hardware slows a GPU at one
temperature, the driver at a lower one. The power brake is pulled from outside, by what feeds the GPU: a power
supply, a power shelf, the board. Other reasons are no fault of the GPU and are not counted: the power cap,
which a GPU reaches whenever it works hard (sw_power_cap), settings (application_clocks, display), the slowest
GPU of a group (sync_boost), and hw_slowdown, which drivers also report when the P-state changes. The tables
decide how many minutes are too many.
"""

from collections.abc import Mapping
from typing import Final

import pynvml

from nodeagent.drivers.nvidia.checks.telemetry import THROTTLE
from nodeagent.drivers.nvidia.nvml.calls import Calls, GpuReadings

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

    def read(self, readings: GpuReadings) -> None:
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


_BY_REASON: Final[Mapping[str, int]] = {
    "thermal_slowdown_minutes_total.hw_thermal": THROTTLE["hw_thermal"],
    "thermal_slowdown_minutes_total.sw_thermal": THROTTLE["sw_thermal"],
    "power_brake_minutes_total": THROTTLE["hw_power_brake"],
    "hw_slowdown_minutes_total": THROTTLE["hw_thermal"] | THROTTLE["hw_power_brake"],
}
"""Reading -> the reasons of which one is enough."""


class SlowdownMinutes:
    """Counts, for one GPU, the minutes in which it was seen slowed down."""

    def __init__(self) -> None:
        self._totals = dict.fromkeys(_BY_REASON, 0)
        self._last_minute = dict.fromkeys(_BY_REASON, -1)

    def see(self, bits: int | None, now_s: float, readings: GpuReadings) -> None:
        """``bits`` is what holds the clocks back now, None if unknown. Fills the counts in."""
        minute = int(now_s // 60)
        for name, reasons in _BY_REASON.items():
            if bits is not None and bits & reasons and minute != self._last_minute[name]:
                self._last_minute[name] = minute
                self._totals[name] += 1
            readings.put(name, self._totals[name])
