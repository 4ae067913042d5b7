"""The PCI Express links of NPUs and network cards: lanes and speed against what card and slot both can do.

sysfs shows, for a function, the possible and the current width and speed (``max_link_width``,
``max_link_speed``, ``current_link_width`` and ``current_link_speed`` in
Documentation/ABI/testing/sysfs-bus-pci of Linux), and the same for the port above it.

- The speed is judged of network cards alone. An accelerator may lower its own while it is idle, which cannot
  be seen from here; active state power management puts a link to sleep, but changes neither speed nor lanes.
- NVIDIA's GPUs are left to their driver, which knows whether they work.
- A function that sleeps is not asked: newer kernels would wake it (``pci_config_pm_runtime_get``).
- A virtual machine sees no real slot, so none of its links is judged.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from nodeagent.drivers.host.check import Evidence, Finding, Look
from nodeagent.drivers.host.files import optional
from nodeagent.drivers.host.hardware import Hardware
from nodeagent.drivers.shared.pci import PciFunction

NPU_WIDTH: Final = "NPU_PCIE_WIDTH"
CARD_WIDTH: Final = "NIC_PCIE_WIDTH"
CARD_SPEED: Final = "NIC_PCIE_SPEED"

IN_A_ROW: Final = 3
"""So many looks in a row have to find it: a link is trained anew after a reset."""

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

    def look(self) -> Look:
        before, self._in_a_row = self._in_a_row, {}
        active: dict[Finding, Evidence] = {}
        for function, codes in self._functions():
            for code, evidence in self._downgraded(function, codes):
                finding = (function.address, code)
                times = self._in_a_row[finding] = before.get(finding, 0) + 1
                if times >= IN_A_ROW:
                    active[finding] = evidence
        return Look(active=active)

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
    """0 where it is not known: a link that is down has none, and 255 stands for what cannot be said."""
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
