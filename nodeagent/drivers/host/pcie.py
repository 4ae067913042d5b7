"""PCI Express of accelerators, network cards and the ports above them: error counters, lanes and speed.

**Errors** are the kernel's AER counters.

    aer_dev_correctable  aer_dev_nonfatal  aer_dev_fatal      "NAME COUNT" a line, then "TOTAL_ERR_... COUNT"

(Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats of Linux, from 4.19 on.) The other end of a link
often sees an error, so the ports are read too. The kernel log has a line for each of these errors. A line may
be lost, and newer kernels limit the rate of lines, but the counters have all. Both use one code on one
device, so they are one fault. The first reading is only a start value.

**Lanes and speed** are compared with what both card and slot support (``max_link_width``, ``max_link_speed``,
``current_link_width`` and ``current_link_speed`` in Documentation/ABI/testing/sysfs-bus-pci of Linux).

- The speed is judged for network cards only. An idle accelerator may lower its own, which cannot be seen from
  here. Active state power management changes neither speed nor lanes.
- NVIDIA GPUs are left to their driver, which knows whether they work.
- A suspended function is not read: newer kernels would wake it (``pci_config_pm_runtime_get``).
- In a virtual machine no link is judged, because it has no real slot.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from nodeagent.core.model import Assertion
from nodeagent.drivers.host.check import CheckResult, Evidence, Finding, Hardware, optional
from nodeagent.drivers.host.edac import risen
from nodeagent.drivers.shared.pci import PciFunction
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

    def look(self) -> CheckResult:
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
        return CheckResult(occurred=occurred, readings=readings)

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


NPU_WIDTH: Final = "NPU_PCIE_WIDTH"
CARD_WIDTH: Final = "NIC_PCIE_WIDTH"
CARD_SPEED: Final = "NIC_PCIE_SPEED"

IN_A_ROW: Final = 3
"""So many looks in a row have to find it: a link is trained again after a reset."""

MOST_LANES: Final = 32


class PcieLinks:
    """``is_virtual``: the node is a virtual machine."""

    def __init__(self, sysfs: Path, hardware: Hardware, is_virtual: Callable[[], bool]) -> None:
        self._devices = sysfs / "bus/pci/devices"
        self._hardware = hardware
        self._is_virtual = is_virtual
        self._in_a_row: dict[Finding, int] = {}

    def is_here(self) -> bool:
        return any(self._functions())

    def look(self) -> CheckResult:
        before, self._in_a_row = self._in_a_row, {}
        active: dict[Finding, Evidence] = {}
        for function, codes in self._functions():
            for code, evidence in self._downgraded(function, codes):
                finding = (function.address, code)
                times = self._in_a_row[finding] = before.get(finding, 0) + 1
                if times >= IN_A_ROW:
                    active[finding] = evidence
        return CheckResult(active=active)

    def _functions(self) -> Iterator[tuple[PciFunction, tuple[str, str]]]:
        """One of each card, with the codes for its lanes and its speed, "" where that is not judged."""
        if self._is_virtual():
            return
        found = self._hardware.functions()
        seen: set[str] = set()
        for functions, codes in (
            (found.npus, (NPU_WIDTH, "")),
            (found.network_cards, (CARD_WIDTH, CARD_SPEED)),
        ):
            for function in functions:
                slot = function.address.rpartition(".")[0]
                has_link = (self._devices / function.address / "current_link_width").exists()
                if function.upstream and has_link and slot not in seen:
                    seen.add(slot)
                    yield function, codes

    def _downgraded(self, function: PciFunction, codes: tuple[str, str]) -> Iterator[tuple[str, Evidence]]:
        card, port = self._devices / function.address, self._devices / function.upstream[0]
        if optional(card / "power/runtime_status") not in ("", "active", "unsupported"):
            return
        width, speed = codes
        for code, what, unit, read in ((width, "width", "lanes", _lanes), (speed, "speed", "GT/s", _speed)):
            if not code:
                continue
            now = read(optional(card / f"current_link_{what}"))
            most = min(read(optional(folder / f"max_link_{what}")) for folder in (card, port))
            if now and now < most:
                yield code, {"port": port.name, what: f"{now:g} of {most:g} {unit}"}


def _lanes(text: str) -> float:
    """0 where it is not known: a link that is down has none, and 255 means unknown."""
    return float(text) if text.isdecimal() and int(text) <= MOST_LANES else 0.0


def _speed(text: str) -> float:
    """The speed in GT/s, from "16.0 GT/s PCIe", or "8 GT/s" of older kernels; 0 where it is not known."""
    number, _, unit = text.partition(" ")
    return float(number) if unit.startswith("GT/s") and number.replace(".", "", 1).isdecimal() else 0.0


_VENDORS: Final = ("QEMU", "KVM", "OpenStack", "KubeVirt", "VMware", "Xen", "Bochs", "Parallels")
"""Firmware vendors of virtual machines (``dmi_vendor_table`` in src/basic/virt.c of systemd)."""


def is_virtual(sysfs: Path, procfs: Path) -> bool:
    """Whether this is a virtual machine: processors have a flag in a guest (x86), or the firmware names a
    vendor.
    """
    vendor = optional(sysfs / "class/dmi/id/sys_vendor")
    flags = next((line for line in optional(procfs / "cpuinfo").splitlines() if line.startswith("flags")), "")
    return "hypervisor" in flags.split() or vendor.startswith(_VENDORS)
