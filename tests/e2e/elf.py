"""What readelf prints of a compiled file: its architecture and what it needs."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

MACHINE = {"amd64": "Advanced Micro Devices X86-64", "arm64": "AArch64"}


@dataclass(frozen=True, slots=True)
class Elf:
    """What ``readelf`` tells of an object."""

    machine: str
    needed: frozenset[str]
    glibc: tuple[int, ...]
    """The newest version of a symbol that it takes from glibc; () is none."""
    weak: frozenset[str]
    """The symbols that it can do without."""


def elf(path: Path) -> Elf:
    told = subprocess.run(
        ["readelf", "--wide", "--file-header", "--dynamic", "--dyn-syms", "--version-info", path],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    machine = re.search(r"Machine: +(.*)", told)
    assert machine is not None
    versions = [tuple(map(int, each.split("."))) for each in re.findall(r"Name: GLIBC_([\d.]+)", told)]
    return Elf(
        machine=machine[1].strip(),
        needed=frozenset(re.findall(r"\(NEEDED\) +Shared library: \[([^]]+)\]", told)),
        glibc=max(versions, default=()),
        weak=frozenset(re.findall(r" WEAK +DEFAULT +UND +([\w]+)", told)),
    )


def begins_as_elf(path: Path) -> bool:
    with path.open("rb") as opened:
        return opened.read(4) == b"\x7fELF"
