"""For how many minutes a GPU was slowed down, by what slowed it: heat, or the power brake.

The bits are those of nvmlClocksEventReasons in nvml.h. Heat is the hardware's doing at one limit and the
driver's at a lower one. The power brake is pulled from outside, by what feeds the GPU: a power supply, a
power shelf, the board. What else holds clocks back is no fault of the GPU and is not counted: the cap on its
power, which it meets whenever it works hard (sw_power_cap), settings (application_clocks, display), the
slowest GPU of its group (sync_boost), and hw_slowdown, which drivers also report when the P-state changes.

How many minutes are too many, the tables say: six of ten are, one is not.
"""

from collections.abc import Mapping
from typing import Final

from nodeagent.drivers.nvidia.calls import Readings
from nodeagent.drivers.nvidia.checks.telemetry import THROTTLE

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

    def see(self, bits: int | None, now_s: float, readings: Readings) -> None:
        """``bits`` is what holds the clocks back now, None if unknown. Fills the counts in."""
        minute = int(now_s // 60)
        for name, reasons in _BY_REASON.items():
            if bits is not None and bits & reasons and minute != self._last_minute[name]:
                self._last_minute[name] = minute
                self._totals[name] += 1
            readings.put(name, self._totals[name])
