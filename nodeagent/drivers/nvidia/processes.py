"""Which processes hold a GPU, as NVML lists them: they compute, draw, or share it by MPS."""

from collections.abc import Collection
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
    """Them, by pid; None where NVML cannot tell, which is not the same as none. Raises as ``Calls.ask``.

    A process that is listed and not there may have ended meanwhile. One that is listed again holds the GPU,
    unseen: it is of another namespace, or NVML's list has entries of another size than ours.
    """
    listed = _listed(calls)
    found = _seen(procfs, listed)
    if listed is not None and found is None:
        found = _seen(procfs, _listed(calls))
    return found


def _listed(calls: Calls) -> set[int] | None:
    pids: set[int] = set()
    asked = False
    for newer, older in _LISTS:
        listed = calls.newest((newer, list), (older, list))
        if listed is not None:
            asked = True
            pids.update(process.pid for process in listed)
        elif not calls.lacks(older):
            return None
    return pids if asked else None


def _seen(procfs: Path, pids: Collection[int] | None) -> tuple[Holder, ...] | None:
    """None unless all of them are."""
    found = [holder_of(procfs, pid) for pid in sorted(pids or ())[:MAX_HOLDERS]]
    seen = tuple(holder for holder in found if holder is not None)
    return seen if pids is not None and len(seen) == len(found) else None
