"""The link of a GPU to its host: PCI Express, and NVLink-C2C on modules with a CPU. It trains no link.

**PCI Express.** A link can do what both GPU and slot can (nvmlDeviceGetMaxPcieLinkGeneration in nvml.h). An
idle GPU may lower its generation, so only a GPU that works is judged. Links repeat packets now and then; the
limit follows from their speed, as in DCGM. A GPU on another bus, such as that of GB10, has placeholders for
these values (nvtop pull request 499): they are not read.

**C2C** (GH200 and GB200). The driver reports how many links exist, and whether each is active
(NVML_FI_DEV_C2C_LINK_COUNT and _GET_STATUS in nvml.h). The GPU's own processor answers
(NV2080_CTRL_CMD_BUS_GET_C2C_INFO in ctrl2080bus.h of NVIDIA's open modules) while other GPUs wait, so this is
read once a minute. Xids 121 and 173 report errors as they happen. If C2C is switched off, no link is missed.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import pynvml

from nodeagent.drivers.nvidia.nvml.baseline import GpuBaseline
from nodeagent.drivers.nvidia.nvml.calls import Calls, GpuReadings
from nodeagent.drivers.nvidia.nvml.fields import Cached, Field, FieldValues

_ERRORS: Final[Mapping[Field, str]] = {
    (getattr(pynvml, f"NVML_FI_DEV_PCIE_COUNT_{name.upper()}"), 0): name
    for name in (
        "correctable_errors",
        "naks_received",
        "receiver_error",
        "bad_tlp",
        "naks_sent",
        "bad_dllp",
        "non_fatal_error",
        "fatal_error",
        "unsupported_req",
        "lcrc_error",
        "lane_error",
    )
}

_GIGABITS: Final = (2.5, 5.0, 8.0, 16.0, 32.0, 64.0)
"""A second, of one lane, by generation."""
_ERROR_RATE: Final = 1e-12
"""Errors a bit that PCI Express allows (``GetExpectedPcieReplayRate`` in DCGM's DcgmHealthWatch.cpp)."""
_MINUTE_S: Final = 60.0

IN_A_ROW: Final = 2
"""So many readings of a GPU that works are needed: a link takes a moment to come up to its speed."""


def replays_a_minute(generation: int, lanes: int) -> int:
    """The most that are in order. Those of a later generation are not known: it has the last one's."""
    gigabits = _GIGABITS[min(generation, len(_GIGABITS)) - 1]
    return math.ceil(round(gigabits * 1e9 * _ERROR_RATE * _MINUTE_S * lanes, 6))


class ReplayMinutes:
    """Counts the minutes in which a link sent more again than its speed explains."""

    def __init__(self) -> None:
        self.total = 0
        self._begun: tuple[float, int] | None = None
        self._limit = 0

    def see(self, replays: int | None, generation: int | None, lanes: int | None, now_s: float) -> None:
        """What cannot be read is left out; the next reading then covers the whole time."""
        if replays is None or not generation or not lanes:
            return
        limit = replays_a_minute(generation, lanes)
        if self._begun is None or replays < self._begun[1]:
            self._begun, self._limit = (now_s, replays), limit
            return
        begun_s, before = self._begun
        self._limit = max(self._limit, limit)
        passed_s = now_s - begun_s
        if passed_s < _MINUTE_S:
            return
        self.total += (replays - before) * _MINUTE_S > self._limit * passed_s
        self._begun, self._limit = (now_s, replays), limit


@dataclass(slots=True)
class PcieGeneration:
    """How many generations the link is below what it could have, when it was last seen at work."""

    _missing: int | None = None
    _in_a_row: int = 0

    def see(self, current: int | None, most: int | None, *, is_working: bool) -> int | None:
        """None: that is not known."""
        if current is None or most is None:
            return None
        if current >= most:
            self._missing, self._in_a_row = 0, 0
        elif is_working:
            self._in_a_row += 1
            if self._in_a_row >= IN_A_ROW:
                self._missing = most - current
        else:
            self._in_a_row = 0
        return self._missing


class PciExpress:
    """The PCI Express link of one GPU."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._errors = FieldValues(calls, _ERRORS)
        self._generation = PcieGeneration()
        self._replays = ReplayMinutes()
        self._bus: int | None = None

    def read(self, readings: GpuReadings, now_s: float, *, sees_slot: bool) -> None:
        """Fill them in, after the readings that show whether the GPU works. ``now_s`` is of a clock that does
        not step.

        ``sees_slot``: the machine sees the slot as it is, which the guest of a virtual machine does not.
        """
        calls = self._calls
        if self._bus is None:
            self._bus = calls.ask(pynvml.nvmlDeviceGetBusType)
        if self._bus not in (None, pynvml.NVML_BUS_TYPE_PCIE):
            return
        generation = calls.ask(pynvml.nvmlDeviceGetCurrPcieLinkGeneration)
        newest = calls.ask(pynvml.nvmlDeviceGetMaxPcieLinkGeneration)
        width = calls.ask(pynvml.nvmlDeviceGetCurrPcieLinkWidth)
        widest = calls.ask(pynvml.nvmlDeviceGetMaxPcieLinkWidth)
        replays = calls.ask(pynvml.nvmlDeviceGetPcieReplayCounter)
        missing = self._generation.see(generation, newest, is_working=_is_working(readings))
        self._replays.see(replays, generation, width, now_s)
        readings.put("pcie_generation", generation, most=16)
        readings.put("pcie_generation_max", newest, most=16)
        readings.put("pcie_width_lanes", width, most=64)
        readings.put("pcie_width_lanes_max", widest, most=64)
        if sees_slot:
            readings.put("pcie_generations_missing", missing, most=16)
        if sees_slot and width is not None and widest is not None:
            readings.put("pcie_lanes_missing", widest - width, most=64)
        readings.put("pcie_replay_total", replays, most=2.0**32)
        readings.put("pcie_replay_minutes_total", self._replays.total)
        for field, value in self._errors.read().items():
            readings.put(f"pcie_errors_total.{_ERRORS[field]}", value)


def _is_working(readings: GpuReadings) -> bool:
    """Whether its utilization shows work. A GPU without that value may be idle."""
    values = readings.values
    return values.get("utilization_ratio.gpu", 0.0) > 0.0 and not values.get("throttle.idle", 0.0)


DOWN: Final = "NV_C2C_DOWN"
C2C_CODES: Final = frozenset({DOWN})
EACH_S: Final = 60.0

MAX_LINKS: Final = 64
_COUNT: Final[Field] = (pynvml.NVML_FI_DEV_C2C_LINK_COUNT, 0)


class C2c:
    """The C2C links of one GPU. ``now_s`` is a clock that does not step."""

    def __init__(
        self,
        calls: Calls,
        now_s: Callable[[], float] = time.monotonic,
        baseline: GpuBaseline | None = None,
    ) -> None:
        self._calls = calls
        self._baseline = baseline or GpuBaseline()
        self._count = FieldValues(calls, [_COUNT])
        self._links = Cached(self._ask, EACH_S, now_s)

    def read(self, readings: GpuReadings) -> list[str] | None:
        """The codes that are active, None where that is unknown. Raises as ``Calls.ask``."""
        links, up = self._links.get() or (0, 0)
        if self._count.has_lost(_COUNT):
            return None
        if not links:
            return []
        readings.put("c2c_links_up", up)
        readings.put("c2c_links_missing", links - up)
        return [DOWN] if up < links else []

    def _ask(self) -> tuple[int, int] | None:
        """How many there should be, and how many are up; None if unknown."""
        count = self._count.read().get(_COUNT)
        if count is None:
            return None
        mode = self._calls.ask(pynvml.nvmlDeviceGetC2cModeInfoV) if count else None
        if mode is not None and not mode.isC2cEnabled:
            return 0, 0
        most = max(self._baseline.c2c_links, min(int(count), MAX_LINKS))
        states = [(pynvml.NVML_FI_DEV_C2C_LINK_GET_STATUS, link) for link in range(most)]
        failed = len(self._calls.failed)
        statuses = FieldValues(self._calls, states).read()
        if len(self._calls.failed) > failed:
            return None
        up = sum(map(bool, statuses.values()))
        self._baseline.see_c2c(most, up)
        return max(up, most - self._baseline.c2c_accepted), up
