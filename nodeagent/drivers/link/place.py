"""Where a port is on the PCI bus, and which chips use it.

An interface on PCI Express is a port of this node's hardware. The chips that use it are those below the
nearest bridge above the port: on training servers each network card shares a switch with the chips that send
through it. If a port shares no bridge with a chip, its chips are unknown unless the configuration names them.
No chip is opened.

Sources: Documentation/ABI/testing/sysfs-class-net of Linux (``dev_port``, ``phys_port_name``), and
``__devlink_port_phys_port_name_get`` of net/devlink/port.c for the names of representors.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nodeagent.drivers.shared import pci
from nodeagent.drivers.shared.pci import ADDRESS, Bus, PciFunction

_REPRESENTOR: Final = re.compile(r"(?:c\d+)?pf\d+(?:vf|sf)\d+")
"""``phys_port_name`` of the representor of a part of a card that is given to a guest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortPlace:
    """``pci`` is the function that the interface belongs to, ``upstream`` the bridges above it, the nearest
    first; ``number`` counts the ports of one function from 0.
    """

    pci: str
    upstream: tuple[str, ...]
    number: int = 0
    driver: str = ""


def place_of_interface(sysfs: Path, name: str) -> PortPlace | None:
    """None if it is virtual, a guest's (SR-IOV), wireless or on USB: those come and go as they are used.

    Raises ``OSError``, but for one that is not there.
    """
    here = sysfs / "class/net" / name
    place = place_of_device(here / "device", _number(here / "dev_port"))
    if place is None or (here / "phy80211").exists() or (here / "wireless").exists():
        return None
    return None if _REPRESENTOR.fullmatch(_text(here / "phys_port_name")) else place


def place_of_device(device: Path, number: int) -> PortPlace | None:
    """The place of what the link ``device`` of a class leads to; None as above."""
    if not device.exists() or (device / "physfn").exists() or _target(device / "subsystem") == "usb":
        return None
    real = device.resolve()
    addresses = tuple(each.name for each in (real, *real.parents) if ADDRESS.fullmatch(each.name))
    if not addresses:
        return None
    return PortPlace(
        pci=addresses[0], upstream=addresses[1:], number=number, driver=_target(device / "driver")
    )


def has_any(sysfs: Path) -> bool:
    """Whether any interface or RDMA device of this node may be a port. Raises ``OSError``."""
    for kind in ("net", "infiniband"):
        for name in names(sysfs / "class" / kind):
            if place_of_device(sysfs / "class" / kind / name / "device", 0) is not None:
                return True
    return False


def names(folder: Path) -> list[str]:
    """What a folder of sysfs holds, in order; nothing where it is not there."""
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _target(link: Path) -> str:
    try:
        return link.readlink().name
    except OSError:
        return ""


def _number(file: Path) -> int:
    text = _text(file)
    return int(text, 0) if re.fullmatch(r"\d{1,4}|0x[0-9a-f]{1,4}", text) else 0


def _text(file: Path) -> str:
    """ "" where there is none: ``phys_port_name`` cannot be read where a driver has no name (EOPNOTSUPP)."""
    try:
        return file.read_text(errors="replace").strip()
    except OSError:
        return ""


_CLASSES: Final = (pci.PROCESSING_ACCELERATOR, pci.VGA_CONTROLLER, pci.CONTROLLER_3D)


class NearbyChips:
    """``named`` maps a port or its RDMA device to the chips that use it; it wins over PCI."""

    def __init__(self, sysfs: Path, named: Mapping[str, Sequence[str]]) -> None:
        self._buses = (Bus(sysfs, pci.HUAWEI), Bus(sysfs, pci.NVIDIA))
        self._named = named
        self._functions: tuple[PciFunction, ...] = ()

    def look(self) -> None:
        """List the chips again. Raises ``OSError``."""
        self._functions = tuple(
            function for bus in self._buses for function in bus.functions(_CLASSES) if not function.virtual
        )

    def of(self, names: Sequence[str], place: PortPlace | None) -> tuple[str, ...]:
        """The chips behind the port of these names at this place, by name, id or PCI address."""
        for name in names:
            if name in self._named:
                return tuple(self._named[name])
        for bridge in place.upstream if place is not None else ():
            if below := tuple(each.address for each in self._functions if bridge in each.upstream):
                return below
        return ()
