"""How the kernel's driver was set up, as it says itself in /proc. It changes nothing."""

from pathlib import Path
from typing import Final

_NVLINK_DISABLED: Final = "NvLinkDisable: 1"
"""A line of its parameters: the option NVreg_NvLinkDisable, by which it trains no NVLink (nv-reg.h of
NVIDIA's open modules; ``nv_procfs_read_params`` in nv-procfs.c prints them).
"""


def switched_off(procfs: Path) -> bool:
    """Whether NVLink is switched off for all GPUs."""
    try:
        lines = (procfs / "driver/nvidia/params").read_text(errors="replace").splitlines()
    except OSError:
        return False
    return _NVLINK_DISABLED in map(str.strip, lines)
