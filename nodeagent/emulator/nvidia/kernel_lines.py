"""The lines that NVIDIA's kernel modules write for an Xid or SXid, put where a daemon reads its kernel log.

Only the form of a line is its business; which of them there are and what they mean stands in tables.
"""

import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TEXTS: Final[Mapping[int, str]] = {
    13: "Graphics SM Warp Exception on (GPC 1, TPC 3, SM 1): Out Of Range Address",
    31: "MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_8 faulted @ 0x7f5c_4c000000. Fault is of type FAULT_PDE",
    43: "Ch 00000008, engmask 00000101",
    45: "Ch 00000008",
    48: "An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at partition 6.",
    61: "Internal micro-controller breakpoint/warning",
    63: "Row Remapper: New row (0x0000000000000001) marked for remapping, reset gpu to activate.",
    64: "Row Remapper: Failed to mark a row for remapping",
    74: "NVLink: fatal error detected on link 3(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",
    79: "GPU has fallen off the bus.",
    92: "High single-bit ECC error rate",
    94: "Contained: SM (0x1). RST: No, D-RST: No",
    95: "Uncontained: FBHUB. RST: Yes, D-RST: No",
    119: "Timeout after 6s of waiting for RPC response from GPU0 GSP! Expected function 76 (GSP_RM_CONTROL)",
    120: "GSP task exception: memory access fault",
}
"""Xid -> what stands behind it in a line. Others have a text that names only the number."""
RECOVERY_ACTIONS: Final = (
    "None",
    "GPU Reset Required",
    "Node Reboot Required",
    "Drain P2P",
    "Drain and Reset",
    "Recover IMEX Domain",
    "Bus Reset",
    "System Reboot",
)
"""By NVML's number of the action."""

_KERNEL_ERROR: Final = "<3>"


@dataclass(frozen=True, slots=True)
class Instance:
    """The MIG instance that an Xid is attributed to, and its compute instance where that is known."""

    gpu: int
    compute: int | None = None


def xid_line(
    pci: str,
    xid: int,
    detail: str = "",
    *,
    process_id: int = 0,
    process_name: str = "",
    instance: Instance | None = None,
) -> str:
    """The line of an Xid of the GPU at ``dddd:bb:dd``; ``detail`` is in place of the usual text.

    Source: krcReportXid_IMPL in src/nvidia/src/kernel/gpu/rc/kernel_rc.c of open-gpu-kernel-modules.
    """
    process = f"pid={process_id}, name={process_name}" if process_id else "pid='<unknown>', name=<unknown>"
    text = detail or TEXTS.get(xid, f"Xid {xid} occurred")
    return f"NVRM: Xid (PCI:{pci}{_attributed(instance)}): {xid}, {process}, {text}"


def _attributed(instance: Instance | None) -> str:
    if instance is None:
        return ""
    compute = "" if instance.compute is None else f" GPU-CI:{instance.compute:02d}"
    return f" GPU-I:{instance.gpu:02d}{compute}"


def recovery_line(pci: str, before: int, after: int) -> str:
    """The line of Xid 154, which says that another recovery action is due."""
    change = " to ".join(f"0x{action:x} ({RECOVERY_ACTIONS[action]})" for action in (before, after))
    return f"NVRM: Xid (PCI:{pci}): 154, GPU recovery action changed from {change}"


def sxid_line(switch: int, pci: str, sxid: int, *, fatal: bool, link: int, detail: str = "") -> str:
    """The line of an SXid of the switch of that number, at ``dddd:bb:dd.f``."""
    kind = "Fatal" if fatal else "Non-fatal"
    text = detail or f"SXid {sxid} occurred"
    return f"nvidia-nvswitch{switch}: SXid (PCI:{pci}): {sxid}, {kind}, Link {link:02d} {text}"


def write_line(log: Path, line: str) -> None:
    """Appends a line to a file, or gives it to the kernel where ``log`` is its device. Raises ``OSError``."""
    is_device = log.exists() and stat.S_ISCHR(log.stat().st_mode)
    with log.open("ab", buffering=0) as file:
        file.write(f"{_KERNEL_ERROR if is_device else ''}{line}\n".encode())
