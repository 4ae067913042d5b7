"""Errors of PCI Express links, from the kernel's AER counters of accelerators, network cards and ports above.

    aer_dev_correctable  aer_dev_nonfatal  aer_dev_fatal      "NAME COUNT" a line, then "TOTAL_ERR_... COUNT"

(Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats of Linux, from 4.19 on.) An error is often seen by
the other end of the link, thus the ports. The kernel log tells of the same errors, a line each; a line may be
lost, and newer kernels leave out lines that come too fast, while the counters have all. Both have one code on
one device, so that they are one fault. What was counted before the first look is not known to be new.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from nodeagent.core.model import Assertion
from nodeagent.drivers.host.check import Look
from nodeagent.drivers.host.edac import risen
from nodeagent.drivers.host.files import optional
from nodeagent.drivers.host.hardware import Hardware
from nodeagent.wire import Signal

CODES: Final[Mapping[str, str]] = {
    "correctable": "AER_CORR",
    "nonfatal": "AER_NONFATAL",
    "fatal": "AER_FATAL",
}

MAX_WATCHED: Final = 128

_TOTAL: Final = "TOTAL_ERR_"

Counters = Mapping[str, int]
"""The count of each error by its name; the total is under ``_TOTAL``."""


class Aer:
    def __init__(self, sysfs: Path, hardware: Hardware) -> None:
        self._devices = sysfs / "bus/pci/devices"
        self._hardware = hardware
        self._before: dict[tuple[str, str], Counters] = {}

    def is_here(self) -> bool:
        return any((self._devices / address / "aer_dev_fatal").exists() for address in self._addresses())

    def look(self) -> Look:
        after: dict[tuple[str, str], Counters] = {}
        occurred: list[Signal] = []
        readings: dict[str, float] = {}
        for address in self._addresses():
            for severity, code in CODES.items():
                counters = parse(optional(self._devices / address / f"aer_dev_{severity}"))
                if _TOTAL not in counters:
                    continue
                after[address, severity] = counters
                readings[f"pcie_aer_{severity}_total.{address}"] = counters[_TOTAL]
                known = self._before.get((address, severity), counters)
                if count := risen(known[_TOTAL], counters[_TOTAL]):
                    occurred.append(_signal(address, code, count, known, counters))
        # A look that fails midway counts nothing twice, and forgets nothing.
        self._before = after
        return Look(occurred=occurred, readings=readings)

    def _addresses(self) -> list[str]:
        return list(dict.fromkeys(self._with_ports()))[:MAX_WATCHED]

    def _with_ports(self) -> Iterator[str]:
        """The functions first: of very many, ports are left out."""
        functions = self._hardware.functions().all
        yield from (function.address for function in functions)
        for function in functions:
            yield from function.upstream


def parse(text: str) -> Counters:
    """What is not understood is left out."""
    counters: dict[str, int] = {}
    for line in text.splitlines():
        name, _, count = line.rpartition(" ")
        if name and count.isascii() and count.isdecimal():
            counters[_TOTAL if name.startswith(_TOTAL) else name.strip()] = int(count)
    return counters


def _signal(address: str, code: str, count: int, before: Counters, now: Counters) -> Signal:
    rises = {name: risen(before.get(name, 0), value) for name, value in now.items() if name != _TOTAL}
    errors = ", ".join(f"{name} {rise}" for name, rise in rises.items() if rise)
    return Signal(
        device=address,
        code=code,
        assertion=Assertion.ONCE,
        count=count,
        evidence={"errors": errors or "not named", "total": str(now[_TOTAL])},
    )
