"""Services that accelerators need: which of them do not run, and which come and go. It starts none.

A service is expected where it is enabled and the node has what needs it: so a fabric manager is missed on a
node with NVSwitches, and no container engine on a laptop. One that the configuration names is expected
wherever it is enabled or not. Where there is no systemd, nothing is expected.

NVIDIA's own driver looks for the fabric manager too, as a process, which finds it in containers as well; both
report one code, so that it is one fault.
"""

import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Final

from nodeagent.core.model import NODE, Assertion
from nodeagent.drivers.host.check import Evidence, Finding, Look
from nodeagent.drivers.host.hardware import Functions, Hardware
from nodeagent.drivers.host.units import Units
from nodeagent.wire import Signal

DOWN: Final = "SERVICE_DOWN"
RESTARTED: Final = "SERVICE_RESTARTED"
FABRIC_MANAGER_DOWN: Final = "NV_FABRIC_MANAGER_DOWN"

LOOK_S: Final = 60.0
"""Which services are expected is found out this often."""

START_S: Final = 300.0
"""So long after the node has booted, a service that was not yet seen may still have to start."""


class Need(Enum):
    """What a service is for."""

    NVSWITCH = auto()
    GPU = auto()
    ACCELERATOR = auto()


SERVICES: Final[Mapping[str, Need]] = MappingProxyType(
    {
        "nvidia-fabricmanager.service": Need.NVSWITCH,
        "nvidia-persistenced.service": Need.GPU,
        "nvidia-imex.service": Need.GPU,
        "containerd.service": Need.ACCELERATOR,
        "crio.service": Need.ACCELERATOR,
        "docker.service": Need.ACCELERATOR,
        "isulad.service": Need.ACCELERATOR,
    }
)
"""Ascend's driver has no service of its own: it is kernel modules and device files."""

_CODES: Final[Mapping[str, str]] = MappingProxyType({"nvidia-fabricmanager.service": FABRIC_MANAGER_DOWN})
"""Services for which another source has a code, with that code."""


@dataclass(slots=True)
class _Service:
    """``run`` is the last that was seen of it."""

    run: str = ""
    restarts: int = 0


class Services:
    """``named`` and ``ignored`` are units of the configuration. ``uptime_s`` is since the boot."""

    def __init__(
        self,
        units: Units,
        hardware: Hardware,
        *,
        named: Collection[str] = (),
        ignored: Collection[str] = (),
        now_s: Callable[[], float] = time.monotonic,
        uptime_s: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME),
    ) -> None:
        self._units = units
        self._hardware = hardware
        self._named = named
        self._ignored = ignored
        self._now_s = now_s
        self._uptime_s = uptime_s
        self._looked_s = float("-inf")
        self._expected: Sequence[str] = ()
        self._seen: dict[str, _Service] = {}

    def is_here(self) -> bool:
        return self._units.are_kept() and bool(self._find())

    def look(self) -> Look:
        if not self._units.are_kept():
            return Look()
        if self._now_s() - self._looked_s >= LOOK_S:
            self._expect(self._find())
            self._looked_s = self._now_s()
        active: dict[Finding, Evidence] = {}
        occurred: list[Signal] = []
        readings: dict[str, float] = {}
        for unit in self._expected:
            service = self._seen.setdefault(unit, _Service())
            run = self._units.run_of(unit)
            if service.run and run not in ("", service.run):
                service.restarts += 1
                occurred.append(_restarted(unit))
            service.run = run or service.run
            if not run and (service.run or self._uptime_s() >= START_S):
                active[NODE, _code(unit)] = {"service": unit}
            readings[f"service_up.{_short(unit)}"] = float(bool(run))
            readings[f"service_restarts_total.{_short(unit)}"] = service.restarts
        return Look(active=active, occurred=occurred, readings=readings)

    def _find(self) -> Sequence[str]:
        enabled, there = self._units.enabled(), _needs(self._hardware.functions())
        found = {unit for unit, need in SERVICES.items() if need in there and unit in enabled}
        return tuple(sorted((found | set(self._named)) - set(self._ignored)))

    def _expect(self, units: Sequence[str]) -> None:
        """It is reported as it changes: nobody can see from outside what is watched."""
        if units != self._expected:
            print(f"services watched: {', '.join(units) or 'none'}", file=sys.stderr, flush=True)
        self._expected = units


def _needs(there: Functions) -> Collection[Need]:
    needs = set()
    if there.switches:
        needs.add(Need.NVSWITCH)
    if there.gpus:
        needs.add(Need.GPU)
    if there.accelerators:
        needs.add(Need.ACCELERATOR)
    return needs


def _restarted(unit: str) -> Signal:
    code = f"{RESTARTED}.{_short(unit)}"
    return Signal(device=NODE, code=code, assertion=Assertion.ONCE, evidence={"service": unit})


def _code(unit: str) -> str:
    return _CODES.get(unit, f"{DOWN}.{_short(unit)}")


def _short(unit: str) -> str:
    """As codes and metrics name it: what a code refines stands behind its last point."""
    return unit.removesuffix(".service").replace(".", "_")
