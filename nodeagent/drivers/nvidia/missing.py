"""Which GPUs are missing: those that PCI lists, or that were listed before, and that NVML does not list.

A GPU that another driver has taken (vfio-pci, for a virtual machine) is not expected. As long as a listed GPU
has not reported its address, it may be in any slot that the kernel driver has taken. Then only the slots that
the driver has not taken are missing, and those that were missing before.
"""

import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

from nodeagent.drivers.api import CallFailed
from nodeagent.drivers.shared.pci import CONTROLLER_3D, NVIDIA, VGA_CONTROLLER, Bus, PciFunction
from nodeagent.wire import Device, Missing

LOOK_S: Final = 5.0
"""PCI is read this often, and when a GPU is gone; all of sysfs each second would be much for nothing."""

OUR_DRIVERS: Final = ("nvidia", "nvidia-nvswitch")
"""The drivers of GPUs and of NVSwitches."""

_BRIDGE: Final = 0x0680
"""The class of NVSwitches up to the third generation; those of the fourth are on no PCI bus."""


def taken(procfs: Path) -> frozenset[str] | None:
    """Where the GPUs are that the kernel driver has taken, as it lists them itself; None if it does not."""
    try:
        return frozenset(entry.name for entry in (procfs / "driver/nvidia/gpus").iterdir())
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None


class Slots:
    """The PCI functions that are GPUs, and which of them NVML has shown; and the NVSwitches of the node."""

    def __init__(self, sysfs: Path) -> None:
        self.functions: Mapping[str, PciFunction] = {}
        self.expected: frozenset[str] = frozenset()
        self.switches: frozenset[str] = frozenset()
        self._bus = Bus(sysfs, NVIDIA)
        self._looked_s = 0.0
        self._shown: dict[str, str] = {}
        self._missing: frozenset[str] = frozenset()

    @property
    def promised(self) -> frozenset[str]:
        """Where GPUs are by PCI, or were by NVML."""
        return self.expected | self._shown.keys()

    @property
    def shown(self) -> frozenset[str]:
        """Where NVML has shown some."""
        return frozenset(self._shown)

    def look(self) -> None:
        """Read PCI. Raises ``CallFailed``: a device may go while it is read."""
        try:
            self._look()
        except OSError as error:
            raise CallFailed(f"the PCI devices cannot be listed: {error}", errno=error.errno or 0) from None

    def _look(self) -> None:
        found = self._bus.functions((CONTROLLER_3D, VGA_CONTROLLER, _BRIDGE))
        gpus = (function for function in found if function.base_class != _BRIDGE and not function.virtual)
        self.functions = {function.address: function for function in gpus}
        self.expected = frozenset(address for address in self.functions if self._is_ours(address))
        bridges = (function.address for function in found if function.base_class == _BRIDGE)
        self.switches = frozenset(address for address in bridges if self._is_ours(address))
        self._looked_s = time.monotonic()

    def missing(self, listed: Sequence[Device], taken: Collection[str] | None) -> tuple[Missing, ...]:
        """The expected GPUs that are not listed, named by their address. ``taken``: see ``taken``.

        Raises ``CallFailed``.
        """
        here = {device.attributes["pci"]: device.device for device in listed if "pci" in device.attributes}
        gone = self._shown.keys() - here.keys()
        if gone or time.monotonic() - self._looked_s >= LOOK_S:
            self.look()
        self._shown |= here
        for address in gone & self.functions.keys() - self.expected:
            del self._shown[address]
        absent = self.promised - here.keys()
        if len(here) < len(listed):
            not_taken = absent - set(taken) if taken is not None else set()
            absent &= self._missing | not_taken
        self._missing = absent
        return tuple(Missing(device=address, reason=self._why(address)) for address in sorted(absent))

    def _is_ours(self, address: str) -> bool:
        return self._bus.driver(address) in ("", *OUR_DRIVERS)

    def _why(self, address: str) -> str:
        was = f" ({self._shown[address]} until now)" if address in self._shown else ""
        if address in self.functions:
            return f"PCI lists a GPU at {address} that the driver does not list{was}"
        return f"neither the driver nor PCI lists the GPU at {address} any more{was}"
