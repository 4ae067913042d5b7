"""What all checks of the driver share: their interface, small files of the kernel, and the hardware on PCI.

A check returns values; the tables decide what a finding means. The list of hardware has accelerators,
NVSwitches, network cards and the ports above them. A function made by SR-IOV is left out, because it uses the
link of its card.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from nodeagent.drivers.shared.pci import (
    CONTROLLER_3D,
    HUAWEI,
    NVIDIA,
    PROCESSING_ACCELERATOR,
    VGA_CONTROLLER,
    Bus,
    PciFunction,
)
from nodeagent.wire import Signal

Finding = tuple[str, str]
"""The device, by its name or PCI address, and the code that is active on it."""

Evidence = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What one look found. ``active``: what is wrong now. ``occurred``: what was, since the look before.
    ``readings``: telemetry of the source, by metric name in base units.
    """

    active: Mapping[Finding, Evidence] = field(default_factory=dict)
    occurred: Sequence[Signal] = ()
    readings: Mapping[str, float] = field(default_factory=dict)


class Check(Protocol):
    def is_here(self) -> bool:
        """Whether the node has anything that it looks at. Raises ``OSError``."""

    def look(self) -> CheckResult:
        """Called at each poll. Raises ``OSError``: what the look before found stays as it was."""


MAX_BYTES: Final = 16 * 1024
"""The kernel gives at most a page."""


class NotANumber(OSError):
    """The kernel wrote something else; str() names the file and shows it."""


def text_of(file: Path) -> str:
    """Raises ``OSError``."""
    with file.open("rb") as opened:
        return opened.read(MAX_BYTES).decode("utf-8", "replace").strip()


def optional(file: Path) -> str:
    """As ``text_of``; "" where there is no such file, or what it belongs to has just gone."""
    try:
        return text_of(file)
    except (FileNotFoundError, NotADirectoryError, ProcessLookupError):
        return ""


def number_of(file: Path) -> int:
    """Not below 0. Raises ``OSError``."""
    text = text_of(file)
    if not (text.isascii() and text.isdecimal() and len(text) <= 20):
        raise NotANumber(f"{file}: {text[:80]!r} where a whole number is needed")
    return int(text)


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
    """``functions`` are those of the last look, which is repeated if it is older than ``LOOK_S``."""

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
