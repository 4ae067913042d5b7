"""Which processes hold a GPU, as NVML lists them: they compute, draw, or share it by MPS."""

from pathlib import Path
from typing import Final

import pynvml

from nodeagent.drivers.holders import holder_of
from nodeagent.drivers.nvidia.calls import Calls
from nodeagent.worker.protocol import Holder

MAX_HOLDERS: Final = 1024

_LISTS: Final = (
    (pynvml.nvmlDeviceGetComputeRunningProcesses_v3, pynvml.nvmlDeviceGetComputeRunningProcesses_v2),
    (pynvml.nvmlDeviceGetGraphicsRunningProcesses_v3, pynvml.nvmlDeviceGetGraphicsRunningProcesses_v2),
    (pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3, pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v2),
)
"""Each with its older version."""


def holders(calls: Calls, procfs: Path) -> tuple[Holder, ...] | None:
    """Them, by pid; None where NVML cannot tell, which is not the same as none. Raises as ``Calls.ask``."""
    pids: set[int] = set()
    asked = False
    for newer, older in _LISTS:
        listed = calls.newest((newer, list), (older, list))
        if listed is not None:
            asked = True
            pids.update(process.pid for process in listed)
        elif not calls.lacks(older):
            return None
    if not asked:
        return None
    found = (holder_of(procfs, pid) for pid in sorted(pids)[:MAX_HOLDERS])
    return tuple(holder for holder in found if holder is not None)
