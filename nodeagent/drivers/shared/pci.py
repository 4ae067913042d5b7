"""The devices that PCI lists in sysfs, which a vendor's library should list too. It configures nothing.

Only the given root is read, so a test can pass a tree. The bus is listed at every call. A function is read
once: there may be hundreds, and a function does not change as long as its entry is the same.
"""

import os
import re
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HUAWEI: Final = 0x19E5
NVIDIA: Final = 0x10DE

PROCESSING_ACCELERATOR: Final = 0x1200
VGA_CONTROLLER: Final = 0x0300
CONTROLLER_3D: Final = 0x0302

ADDRESS: Final = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-1][0-9a-f]\.[0-7]")
"""As the kernel writes it: ``domain:bus:device.function``, the domain rarely of more than four digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PciFunction:
    """One function as the kernel found it. ``base_class`` is class and sub-class, such as 0x0302.

    ``upstream`` are the addresses of the bridges above it, the nearest first. ``virtual``: made by SR-IOV.
    """

    address: str
    vendor: int
    device: int
    base_class: int
    upstream: tuple[str, ...] = ()
    virtual: bool = False


_Entry = tuple[str, int]
"""Its name and its inode, which distinguishes it from another of that name: kernfs gives each new entry
another number (``kernfs_ino`` in include/linux/kernfs.h, ``__kernfs_new_node`` in fs/kernfs/dir.c)."""


class Bus:
    """One vendor's functions, or with ``vendor`` None everybody's. ``sysfs`` holds ``bus/pci``."""

    def __init__(self, sysfs: Path, vendor: int | None = None) -> None:
        self._devices = sysfs / "bus/pci/devices"
        self._vendor = vendor
        self._known: dict[_Entry, PciFunction | None] = {}

    def functions(self, classes: Collection[int]) -> tuple[PciFunction, ...]:
        """Those of these classes (class and sub-class), by address; none where there is no PCI.

        A function that goes while it is read is left out. Raises ``PermissionError``, and ``OSError`` where
        sysfs cannot be read for another reason.
        """
        before, self._known = self._known, {}
        for entry in self._entries():
            if entry in before:
                self._known[entry] = before[entry]
            else:
                with suppress(FileNotFoundError):
                    self._known[entry] = _function(self._devices / entry[0], self._vendor)
        found = sorted(self._known.items())
        return tuple(each for _, each in found if each is not None and each.base_class in classes)

    def driver(self, address: str) -> str:
        """The driver that has it now, "" where none has."""
        try:
            return (self._devices / address / "driver").readlink().name
        except FileNotFoundError:
            return ""

    def _entries(self) -> list[_Entry]:
        try:
            with os.scandir(self._devices) as entries:
                return [(each.name, each.inode()) for each in entries if ADDRESS.fullmatch(each.name)]
        except (FileNotFoundError, NotADirectoryError):
            return []


def normal(address: str) -> str:
    """An address as libraries write it (``00000000:3B:00.0``, ``3b:00.0``) in the form of the kernel.

    Raises ``ValueError``.
    """
    domain, _, rest = address.strip().lower().rpartition(":")[0].rpartition(":")
    slot = address.strip().lower().rpartition(":")[2]
    try:
        written = f"{int(domain or '0', 16):04x}:{rest}:{slot}"
    except ValueError:
        written = ""
    if not ADDRESS.fullmatch(written):
        raise ValueError(f"{address!r} is no PCI address; one is domain:bus:device.function")
    return written


def _function(entry: Path, wanted_vendor: int | None) -> PciFunction | None:
    """None for another vendor's. Raises ``FileNotFoundError`` where it goes meanwhile."""
    vendor = _number(entry / "vendor")
    if wanted_vendor not in (None, vendor):
        return None
    return PciFunction(
        address=entry.name,
        vendor=vendor,
        device=_number(entry / "device"),
        base_class=_number(entry / "class") >> 8,
        upstream=_upstream(entry),
        virtual=(entry / "physfn").is_symlink(),
    )


def _number(file: Path) -> int:
    text = file.read_text().strip()
    try:
        return int(text, 16)
    except ValueError:
        raise OSError(f"{file}: {text!r} where a hexadecimal number is needed") from None


def _upstream(entry: Path) -> tuple[str, ...]:
    """The bridges above a device: in sysfs it lies in the folder of the bridge above it."""
    return tuple(parent.name for parent in entry.resolve().parents if ADDRESS.fullmatch(parent.name))
