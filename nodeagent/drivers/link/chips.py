"""Which chips use a port: those below the nearest PCI Express bridge that is above the port too.

On servers for training each network card shares a switch with the chips that send through it. Where a port
has no bridge in common with any chip, nothing is said: then the configuration may. It opens no chip.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from nodeagent.drivers.link.place import Place
from nodeagent.drivers.shared import pci
from nodeagent.drivers.shared.pci import Bus, PciFunction

_CLASSES: Final = (pci.PROCESSING_ACCELERATOR, pci.VGA_CONTROLLER, pci.CONTROLLER_3D)


class Chips:
    """``named`` says by the name of a port or of its RDMA device which chips use it, whatever PCI says."""

    def __init__(self, sysfs: Path, named: Mapping[str, Sequence[str]]) -> None:
        self._buses = (Bus(sysfs, pci.HUAWEI), Bus(sysfs, pci.NVIDIA))
        self._named = named
        self._functions: tuple[PciFunction, ...] = ()

    def look(self) -> None:
        """List the chips anew. Raises ``OSError``."""
        self._functions = tuple(
            function for bus in self._buses for function in bus.functions(_CLASSES) if not function.virtual
        )

    def of(self, names: Sequence[str], place: Place | None) -> tuple[str, ...]:
        """The chips behind the port of these names at this place, by name, id or PCI address."""
        for name in names:
            if name in self._named:
                return tuple(self._named[name])
        for bridge in place.upstream if place is not None else ():
            if below := tuple(each.address for each in self._functions if bridge in each.upstream):
                return below
        return ()
