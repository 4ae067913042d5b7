"""Measurements of a GPU: temperature, power, clocks, utilization, memory, and its persistence mode.

Readings are in base units. Their bounds are wide: they drop impossible values and judge nothing.

Without persistence mode the driver does not keep a GPU initialised while no program has it open. It is off
unless nvidia-persistenced or ``nvidia-smi -pm 1`` switched it on (nvmlDeviceGetPersistenceMode in nvml.h).
Nothing is switched here.
"""

from collections.abc import Mapping
from typing import Any, Final

import pynvml

from nodeagent.drivers.nvidia.nvml.calls import Calls, GpuReadings, asks
from nodeagent.drivers.nvidia.nvml.fields import Field, FieldValues

_MILLI: Final = 1e-3
_MEGA: Final = 1e6
_PERCENT: Final = 0.01

_HOTTEST: Final = 200.0
_MOST_WATTS: Final = 10_000.0

THROTTLE: Final[Mapping[str, int]] = {
    "idle": 0x1,
    "application_clocks": 0x2,
    "sw_power_cap": 0x4,
    "hw_slowdown": 0x8,
    "sync_boost": 0x10,
    "sw_thermal": 0x20,
    "hw_thermal": 0x40,
    "hw_power_brake": 0x80,
    "display": 0x100,
    "board_limit": 0x200,
    "reliability": 0x400,
}

_CLOCKS: Final[Mapping[str, int]] = {
    "graphics": pynvml.NVML_CLOCK_GRAPHICS,
    "sm": pynvml.NVML_CLOCK_SM,
    "memory": pynvml.NVML_CLOCK_MEM,
}


def _id(name: str) -> Field:
    return (getattr(pynvml, f"NVML_FI_DEV_{name}"), 0)


_GAUGES: Final[Mapping[Field, tuple[str, float, float, float]]] = {
    _id("MEMORY_TEMP"): ("temperature_celsius.memory", 0, _HOTTEST, 1.0),
    _id("POWER_INSTANT"): ("power_watts", 0, _MOST_WATTS * 1000, _MILLI),
    _id("POWER_AVERAGE"): ("power_watts.average", 0, _MOST_WATTS * 1000, _MILLI),
    _id("POWER_CURRENT_LIMIT"): ("power_limit_watts", 0, _MOST_WATTS * 1000, _MILLI),
    _id("TEMPERATURE_SHUTDOWN_TLIMIT"): ("temperature_limit_celsius.shutdown", -_HOTTEST, _HOTTEST, 1.0),
    _id("TEMPERATURE_SLOWDOWN_TLIMIT"): ("temperature_limit_celsius.slowdown", -_HOTTEST, _HOTTEST, 1.0),
    _id("TEMPERATURE_MEM_MAX_TLIMIT"): ("temperature_limit_celsius.memory", -_HOTTEST, _HOTTEST, 1.0),
    _id("TEMPERATURE_GPU_MAX_TLIMIT"): ("temperature_limit_celsius.gpu", -_HOTTEST, _HOTTEST, 1.0),
    _id("TOTAL_ENERGY_CONSUMPTION"): ("energy_joules_total", 0, 2.0**63, _MILLI),
}
"""Field -> reading, bounds of the raw value, factor. The limits are margins: degrees to go."""


class GpuTelemetry:
    """The readings of one GPU."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._gauges = FieldValues(calls, _GAUGES)

    def gauges(self, readings: GpuReadings) -> int | None:
        """Fill them in; returns the bits of what holds the clocks back, None if unknown."""
        calls = self._calls
        temperature = calls.newest(
            (_temperature_v1, _as_is),
            (_temperature, _as_is),
        )
        readings.put("temperature_celsius", temperature, most=_HOTTEST)
        readings.put(
            "temperature_margin_celsius",
            calls.ask(pynvml.nvmlDeviceGetMarginTemperature),
            least=-_HOTTEST,
            most=_HOTTEST,
        )
        for field, value in self._gauges.read().items():
            name, least, most, scale = _GAUGES[field]
            readings.put(name, value, least=least, most=most, scale=scale)
        self._power(readings)
        for name, clock in _CLOCKS.items():
            mega_hertz = calls.ask(pynvml.nvmlDeviceGetClockInfo, clock, variant=(clock,))
            readings.put(f"frequency_hertz.{name}", mega_hertz, most=100_000, scale=_MEGA)
        self._use(readings)
        return self._throttle(readings)

    def _power(self, readings: GpuReadings) -> None:
        """What the fields did not give, an older driver gives by calls of its own."""
        calls, values = self._calls, readings.values
        if "power_watts" not in values:
            readings.put(
                "power_watts",
                calls.ask(pynvml.nvmlDeviceGetPowerUsage),
                most=_MOST_WATTS * 1000,
                scale=_MILLI,
            )
        if "power_limit_watts" not in values:
            limit = calls.ask(pynvml.nvmlDeviceGetEnforcedPowerLimit)
            readings.put("power_limit_watts", limit, most=_MOST_WATTS * 1000, scale=_MILLI)

    def _use(self, readings: GpuReadings) -> None:
        calls = self._calls
        if (rates := calls.ask(pynvml.nvmlDeviceGetUtilizationRates)) is not None:
            readings.put("utilization_ratio.gpu", rates.gpu, most=100, scale=_PERCENT)
            readings.put("utilization_ratio.memory_bandwidth", rates.memory, most=100, scale=_PERCENT)
        memory = calls.newest((_memory_v2, _as_is), (pynvml.nvmlDeviceGetMemoryInfo, _as_is))
        if memory is not None:
            readings.put("memory_total_bytes", memory.total)
            readings.put("memory_used_bytes", memory.used, most=float(memory.total))

    def _throttle(self, readings: GpuReadings) -> int | None:
        bits = self._calls.newest(
            (pynvml.nvmlDeviceGetCurrentClocksEventReasons, _as_is),
            (pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, _as_is),
        )
        if bits is None:
            return None
        for name, bit in THROTTLE.items():
            readings.put(f"throttle.{name}", 1.0 if bits & bit else 0.0)
        return int(bits)


@asks("nvmlDeviceGetTemperatureV")
def _temperature_v1(handle: Any) -> Any:
    return pynvml.nvmlDeviceGetTemperatureV(handle, pynvml.NVML_TEMPERATURE_GPU)


@asks("nvmlDeviceGetTemperature")
def _temperature(handle: Any) -> Any:
    return pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)


@asks("nvmlDeviceGetMemoryInfo_v2")
def _memory_v2(handle: Any) -> Any:
    return pynvml.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2)


def _as_is(value: Any) -> Any:
    return value


OFF: Final = "NV_PERSISTENCE_OFF"
PERSISTENCE_CODES: Final = frozenset({OFF})


def read(calls: Calls, readings: GpuReadings) -> list[str] | None:
    """The codes that are active, None where that is unknown. Raises as ``Calls.ask``."""
    mode = calls.ask(pynvml.nvmlDeviceGetPersistenceMode)
    readings.put("persistence_mode", mode, most=1)
    if mode is None:
        return None
    return [OFF] if mode == pynvml.NVML_FEATURE_DISABLED else []
