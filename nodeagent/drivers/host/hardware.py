"""Which accelerators, NVSwitches and network cards PCI lists, and the ports above them. It reads no link.

A function that SR-IOV made is left out: it has the link of the card that it is a part of.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nodeagent.drivers.shared.pci import (
    CONTROLLER_3D,
    HUAWEI,
    NVIDIA,
    PROCESSING_ACCELERATOR,
    VGA_CONTROLLER,
    Bus,
    PciFunction,
)

LOOK_S: Final = 60.0
"""PCI is listed this often: there may be hundreds of functions, and hardly ever another one."""

NVSWITCH: Final = (NVIDIA, 0x0680)
"""Up to the third generation; those of the fourth are on no PCI bus."""
ETHERNET: Final = 0x0200
INFINIBAND: Final = 0x0207

_GPUS: Final = frozenset({(NVIDIA, CONTROLLER_3D), (NVIDIA, VGA_CONTROLLER)})
_NPUS: Final = frozenset({(HUAWEI, PROCESSING_ACCELERATOR)})
_CARDS: Final = frozenset({ETHERNET, INFINIBAND})
_CLASSES: Final = frozenset({base_class for _, base_class in (*_GPUS, *_NPUS, NVSWITCH)}) | _CARDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Functions:
    gpus: tuple[PciFunction, ...] = ()
    npus: tuple[PciFunction, ...] = ()
    switches: tuple[PciFunction, ...] = ()
    network_cards: tuple[PciFunction, ...] = ()

    @property
    def accelerators(self) -> tuple[PciFunction, ...]:
        return (*self.gpus, *self.npus)

    @property
    def all(self) -> tuple[PciFunction, ...]:
        return (*self.accelerators, *self.switches, *self.network_cards)


class Hardware:
    """``functions`` are those of the last look, which is made anew where it is older than ``LOOK_S``."""

    def __init__(self, sysfs: Path, now_s: Callable[[], float] = time.monotonic) -> None:
        self._bus = Bus(sysfs)
        self._now_s = now_s
        self._looked_s = float("-inf")
        self._functions = Functions()

    def functions(self) -> Functions:
        """Raises ``OSError``."""
        if self._now_s() - self._looked_s >= LOOK_S:
            self._functions = _sorted(each for each in self._bus.functions(_CLASSES) if not each.virtual)
            self._looked_s = self._now_s()
        return self._functions


def _sorted(functions: Iterable[PciFunction]) -> Functions:
    found = [(each, (each.vendor, each.base_class)) for each in functions]
    return Functions(
        gpus=tuple(each for each, what in found if what in _GPUS),
        npus=tuple(each for each, what in found if what in _NPUS),
        switches=tuple(each for each, what in found if what == NVSWITCH),
        network_cards=tuple(each for each, what in found if what[1] in _CARDS),
    )
