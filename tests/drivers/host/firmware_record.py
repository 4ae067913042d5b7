"""Hardware errors of a firmware that is made up, for a guest of QEMU whose memory is a file (docs/host.md).

    python -m tests.drivers.host.firmware_record tables FOLDER
    python -m tests.drivers.host.firmware_record WHAT SEVERITY FILE [--previous-boot]

WHAT is memory or card (the PCI function 01:00.0), SEVERITY corrected, recoverable or fatal. ``tables`` writes
hest.bin and bert.bin for ``-acpitable``. The others write a record where these tables say it lies, into pages
that the guest must leave alone (``memmap=1M$0x30000000``); the kernel looks every 200 ms. Formats:
include/acpi/actbl1.h and include/linux/cper.h of Linux.
"""

import struct
import sys
from pathlib import Path
from typing import Final
from uuid import UUID

POINTER: Final = 0x3000_0000
RECORD: Final = 0x3000_1000
RECORD_OF_PREVIOUS_BOOT: Final = 0x3001_0000
SIZE: Final = 4096

SEVERITIES: Final = {"recoverable": 0, "fatal": 1, "corrected": 2}
MODULE_HANDLE: Final = 0x1100
"""QEMU's first memory module in SMBIOS."""


def tables(folder: Path) -> None:
    """One source of errors, that the kernel polls, and the record of the boot before."""
    address = struct.pack("<BBBBQ", 0, 64, 0, 4, POINTER)
    polled = struct.pack("<BBH6I", 0, 28, 0, 200, 0, 0, 0, 0, 0)
    source = struct.pack("<HHHBB3I", 9, 0, 0xFFFF, 0, 1, 1, 4, 0) + address + polled + struct.pack("<I", SIZE)
    (folder / "hest.bin").write_bytes(struct.pack("<I", 1) + source)
    (folder / "bert.bin").write_bytes(struct.pack("<IQ", SIZE, RECORD_OF_PREVIOUS_BOOT))


def memory(severity: str) -> bytes:
    """A section about a memory module: address, place and handle are valid."""
    error = 2 if severity == "corrected" else 3
    place = (0, 1, 0, 2, 0, 1021, 80, 0)
    guid = UUID("a5bc1114-6f64-4ede-b863-3e83ed7c83b1").bytes_le
    return guid + struct.pack(
        "<4Q8H3Q2B3H",
        0x2437E,
        0,
        0x234_5600,
        ~0xFFF & 2**64 - 1,
        *place,
        0,
        0,
        0,
        error,
        0,
        0,
        0,
        MODULE_HANDLE,
    )


def card(severity: str) -> bytes:
    """A section about a PCI Express function: kind, version, command, address and AER registers are valid."""
    uncorrected, corrected = {"corrected": (0, 0x40), "recoverable": (0x4000, 0), "fatal": (0x10, 0)}[
        severity
    ]
    head = struct.pack("<QI2BHHHI", 0x8F, 0, 1, 2, 0, 0x0507, 0x0010, 0)
    address = struct.pack("<HH3s2BH2BHB", 0x8086, 0x10D3, b"\0\0\2", 0, 0, 0, 1, 0, 0, 0)
    aer = struct.pack("<7I", 0x0001_0001, uncorrected, 0, 0x0006_2030, corrected, 0xE000, 0)
    guid = UUID("d995e954-bbc1-430f-ad91-b44dcb3c6f35").bytes_le
    return guid + head + address + bytes(12 + 60) + aer.ljust(96, b"\0")


SECTIONS: Final = {"memory": memory, "card": card}


def record(what: str, severity: str) -> bytes:
    """An error status block with one section, whose part is called DIMM_A1 where it is a module."""
    section = SECTIONS[what](severity)
    guid, body = section[:16], section[16:]
    part = b"DIMM_A1" if what == "memory" else b"SLOT 1"
    entry = guid + struct.pack("<IHBBI", SEVERITIES[severity], 0x201, 2, 0, len(body)) + bytes(16)
    data = entry + part.ljust(20, b"\0") + body
    status = (2 if severity == "corrected" else 1) | 1 << 4
    return struct.pack("<5I", status, 0, 0, len(data), SEVERITIES[severity]) + data


def main(arguments: list[str]) -> None:
    if arguments[0] == "tables":
        tables(Path(arguments[1]))
        return
    what, severity, file, *previous_boot = arguments
    block = record(what, severity)
    at = RECORD_OF_PREVIOUS_BOOT if previous_boot else RECORD
    with Path(file).open("r+b") as ram:
        ram.seek(POINTER)
        ram.write(struct.pack("<Q", RECORD))
        # The kernel takes a record as soon as its first word is not 0.
        ram.seek(at + 4)
        ram.write(block[4:])
        ram.flush()
        ram.seek(at)
        ram.write(block[:4])


if __name__ == "__main__":
    main(sys.argv[1:])
