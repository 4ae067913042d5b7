"""The driver ``host``: faults of the node that stop jobs and are not of its chips, its network or its BMC.

    sysfs ──> memory modules (EDAC), PCI Express (AER counters, links)  ┐
    files ──> services (systemd), storage clients (DPC, DTFS)           ├──> what is active, as it changes
                                                                        ┘
Its devices are the memory modules; each is polled. Everything else is read with each poll of the source, and
reported for the node or for a PCI address, as the kernel's lines are. The driver sends no command to any
device and no request to any service. If the node has none of these, the source is absent.
"""

import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Final

from nodeagent.core.model import Assertion
from nodeagent.drivers.api import Driver, Emit, Population, Reading, Unavailable
from nodeagent.drivers.host.blocked import BlockedProcesses
from nodeagent.drivers.host.check import Check, CheckResult, Evidence, Finding, Hardware
from nodeagent.drivers.host.edac import Memory
from nodeagent.drivers.host.pcie import Aer, PcieLinks, is_virtual
from nodeagent.drivers.host.services import Services, Units
from nodeagent.drivers.host.storage_clients import StorageClients
from nodeagent.wire import MAX_SIGNALS, Active, Batch, CaughtUp, Configure, Device, Pattern, Signal

NOTHING: Final = (
    "nothing to watch: no EDAC, no PCI Express card, no service of accelerators, no storage client"
)

MODULES: Final = "memory modules"


def create(configure: Configure, emit: Emit) -> Driver:
    """``config`` keys: ``sysfs``, ``procfs``, ``root``, ``services``, ``ignored_services``."""
    config = configure.config
    usual = {"sysfs": "/sys", "procfs": "/proc", "root": "/"}
    sysfs, procfs, root = (Path(str(config.get(key, path))) for key, path in usual.items())
    hardware = Hardware(sysfs)
    services = Services(
        Units(root),
        hardware,
        named=_names(config.get("services", ())),
        ignored=_names(config.get("ignored_services", ())),
    )
    checks: Mapping[str, Check] = {
        "services": services,
        "storage clients": StorageClients(root),
        "AER counters": Aer(sysfs, hardware),
        "blocked processes": BlockedProcesses(procfs, hardware),
        "PCI Express links": PcieLinks(sysfs, hardware, cache(partial(is_virtual, sysfs, procfs))),
    }
    return HostDriver(memory=Memory(sysfs), checks=checks, emit=emit)


class HostDriver:
    """``checks`` by what they look at."""

    def __init__(self, *, memory: Memory, checks: Mapping[str, Check], emit: Emit) -> None:
        self._memory = memory
        self._checks = checks
        self._emit = emit
        self._found: dict[str, CheckResult] = {}
        self._failures: dict[str, str] = {}
        self._listings = 0
        self._active: Mapping[Finding, Evidence] = {}
        self._modules: Sequence[Device] = ()

    def open(self) -> None:
        try:
            is_here = self._memory.is_here() or any(check.is_here() for check in self._checks.values())
            if not is_here:
                raise Unavailable(NOTHING, absent=True)
        except OSError as error:
            raise Unavailable(f"the node cannot be looked at: {error}", errno=error.errno or 0) from None

    def devices(self) -> Population:
        """The first listing is the worker's greeting, before which nothing may be reported."""
        self._list_modules()
        self._listings += 1
        if self._listings > 1:
            begun_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
            looks = [self._look(what, check) for what, check in self._checks.items()]
            self._report(looks, begun_ns)
        return Population(devices=self._modules, readings=self._readings())

    def poll(self, device: str) -> Reading:
        reading, signals = self._memory.watched(device).poll()
        if signals:
            self._emit(Batch(signals=tuple(signals)))
        return reading

    def reload(self, patterns: Sequence[Pattern]) -> None:
        """It has no patterns."""

    def close(self) -> None:
        """It holds nothing."""

    # ------------------------------------------------------------------ looking

    def _list_modules(self) -> None:
        """If listing fails, the last list is returned; each poll reports its own failure."""
        try:
            self._modules = self._memory.devices()
            self._say(MODULES, "")
        except OSError as error:
            self._say(MODULES, f"{MODULES} cannot be listed: {error}")

    def _look(self, what: str, check: Check) -> CheckResult:
        """A check that fails does not affect the others; its last result is kept."""
        try:
            look = self._found[what] = check.look()
            self._say(what, "")
        except OSError as error:
            self._say(what, f"{what} cannot be looked at: {error}")
            look = self._found[what] = CheckResult(active=self._found.get(what, CheckResult()).active)
        return look

    def _say(self, what: str, failure: str) -> None:
        if failure != self._failures.get(what, ""):
            self._failures[what] = failure
            print(failure or f"{what} can be looked at again", file=sys.stderr, flush=True)

    def _readings(self) -> Mapping[str, float]:
        readings = {name: value for look in self._found.values() for name, value in look.readings.items()}
        failed = {f"check_failed.{what}": 1.0 for what, failure in self._failures.items() if failure}
        return {**readings, **failed}

    # ------------------------------------------------------------------ reporting

    def _report(self, looks: Sequence[CheckResult], begun_ns: int) -> None:
        """As it changes. The first report names all that is active: any other fault of an earlier life is
        over.
        """
        active = {finding: evidence for look in looks for finding, evidence in look.active.items()}
        signals = [signal for look in looks for signal in look.occurred]
        signals += [
            Signal(device=device, code=code, assertion=Assertion.OCCUR, evidence=dict(evidence))
            for (device, code), evidence in active.items()
            if (device, code) not in self._active
        ]
        signals += [
            Signal(device=device, code=code, assertion=Assertion.RECOVER)
            for device, code in self._active
            if (device, code) not in active
        ]
        for first in range(0, len(signals), MAX_SIGNALS):
            self._emit(Batch(signals=tuple(signals[first : first + MAX_SIGNALS])))
        self._active = active
        if self._listings == 2:
            codes = sorted({code for _, code in active})
            self._emit(CaughtUp(begun_ns=begun_ns, active=tuple(Active(code=code) for code in codes)))


def _names(value: object) -> tuple[str, ...]:
    return tuple(str(each) for each in value) if isinstance(value, (tuple, list)) else ()
