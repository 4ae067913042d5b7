"""Services that accelerators need: which of them do not run, and which are restarted. It starts none.

A service is expected if it is enabled and the node has hardware that needs it: a fabric manager on a node
with NVSwitches, no container engine on a laptop. A service that the configuration names is always expected.
Without systemd, none is. NVIDIA's driver looks for the process of the fabric manager too, also in containers;
both use one code, so it is one fault.

The state is read from the files that systemd keeps for others:

- ``/run/systemd/units/invocation:NAME`` is a link while the unit runs, starts or stops, and names its current
  run; a unit that has failed, has ended or waits for a restart has none (``unit_export_state_files``,
  ``unit_notify`` in src/core/unit.c of systemd, from version 235 on).
- ``*.wants/NAME`` and ``*.requires/NAME`` in the folders of units: it is enabled (systemd.unit(5),
  [Install]).
- ``NAME`` in one of those folders as a link to ``/dev/null``: it is masked.

systemd's bus would show more, such as why a service failed. But systemd obeys every request of root there,
and the daemon must not have the power to stop a service.
"""

import os
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from types import MappingProxyType
from typing import Final

from nodeagent.core.model import NODE, Assertion
from nodeagent.drivers.host.check import CheckResult, Evidence, Finding, Functions, Hardware
from nodeagent.wire import Signal

_RUNS: Final = "run/systemd/units"
_FOLDERS: Final = ("etc/systemd/system", "run/systemd/system", "usr/lib/systemd/system", "lib/systemd/system")
"""The first one that has a unit decides (systemd.unit(5), unit file load path)."""

_WANTED_BY: Final = (".wants", ".requires")


class Units:
    """``root`` is that of the node's file system."""

    def __init__(self, root: Path) -> None:
        self._runs = root / _RUNS
        self._folders = [root / folder for folder in _FOLDERS]

    def are_kept(self) -> bool:
        """False where the node has no systemd, or this process may not see it."""
        return self._runs.is_dir()

    def run_of(self, unit: str) -> str:
        """Which run of it this is, "" where it does not run. Raises ``OSError``."""
        try:
            return str((self._runs / f"invocation:{unit}").readlink())
        except FileNotFoundError:
            return ""

    def enabled(self) -> frozenset[str]:
        """The names of the services that are started with the node, or with others. Raises ``OSError``."""
        wanted = {name for folder in self._folders for name in _wanted_in(folder)}
        return frozenset(name for name in wanted if not self._is_masked(name))

    def _is_masked(self, unit: str) -> bool:
        for folder in self._folders:
            file = folder / unit
            if file.is_symlink() or file.exists():
                return file.is_symlink() and str(file.readlink()) == os.devnull
        return False


def _wanted_in(folder: Path) -> Iterator[str]:
    for target in _names(folder):
        if target.endswith(_WANTED_BY):
            yield from (name for name in _names(folder / target) if name.endswith(".service"))


def _names(folder: Path) -> list[str]:
    """Empty where there is no such folder."""
    try:
        return [entry.name for entry in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []


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

    def look(self) -> CheckResult:
        if not self._units.are_kept():
            return CheckResult()
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
        return CheckResult(active=active, occurred=occurred, readings=readings)

    def _find(self) -> Sequence[str]:
        enabled, there = self._units.enabled(), _needs(self._hardware.functions())
        found = {unit for unit, need in SERVICES.items() if need in there and unit in enabled}
        return tuple(sorted((found | set(self._named)) - set(self._ignored)))

    def _expect(self, units: Sequence[str]) -> None:
        """The list of watched services is printed when it changes, because it is visible nowhere else."""
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
    """As codes and metrics name it: the part that refines a code follows its last point."""
    return unit.removesuffix(".service").replace(".", "_")
