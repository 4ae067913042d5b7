"""Which processes hold a GPU, as NVML lists them: they compute, draw, or share it by MPS.

Those that compute are asked for at each poll. The other lists are asked for seldom: that of those that draw
takes milliseconds, and keeps other programs from submitting work meanwhile.
"""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Final

import pynvml

from nodeagent.drivers.nvidia.calls import Calls
from nodeagent.drivers.shared.holders import holder_of
from nodeagent.wire import Holder

MAX_HOLDERS: Final = 1024

_List = tuple[Callable[..., Any], Callable[..., Any]]
"""A list and its older version."""

_COMPUTING: Final[Sequence[_List]] = (
    (pynvml.nvmlDeviceGetComputeRunningProcesses_v3, pynvml.nvmlDeviceGetComputeRunningProcesses_v2),
)
_OTHERS: Final[Sequence[_List]] = (
    (pynvml.nvmlDeviceGetGraphicsRunningProcesses_v3, pynvml.nvmlDeviceGetGraphicsRunningProcesses_v2),
    (pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3, pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v2),
)


class Processes:
    """The processes on one GPU."""

    def __init__(self, calls: Calls, procfs: Path) -> None:
        self._calls = calls
        self._procfs = procfs
        self._others: set[int] | None = None
        self._asked = False

    def seldom(self) -> None:
        """Those that draw or share it. Raises as ``Calls.ask``."""
        self._asked = False
        self._others = self._listed(_OTHERS)

    def holders(self) -> tuple[Holder, ...] | None:
        """Them, by pid; None where NVML cannot say, which is not the same as none. Raises as ``Calls.ask``.

        A process that is listed and not there may have ended meanwhile. One that is listed again holds the
        GPU, unseen: it is of another namespace, or NVML's list has entries of another size than ours.
        """
        listed = self._all()
        found = self._seen(listed)
        if listed is not None and found is None:
            self.seldom()
            found = self._seen(self._all())
        return found

    def _all(self) -> set[int] | None:
        computing = self._listed(_COMPUTING)
        if computing is None or self._others is None or not self._asked:
            return None
        return computing | self._others

    def _listed(self, lists: Sequence[_List]) -> set[int] | None:
        """None where one failed, or is refused though it was there; one that the GPU never had is empty."""
        pids: set[int] = set()
        for newer, older in lists:
            listed = self._calls.newest((newer, list), (older, list), strict=True)
            if listed is not None:
                self._asked = True
                pids.update(process.pid for process in listed)
            elif not self._calls.lacks(older) or self._calls.is_lost(newer, older):
                return None
        return pids

    def _seen(self, pids: Collection[int] | None) -> tuple[Holder, ...] | None:
        """None unless all of them are."""
        found = [holder_of(self._procfs, pid) for pid in sorted(pids or ())[:MAX_HOLDERS]]
        seen = tuple(holder for holder in found if holder is not None)
        return seen if pids is not None and len(seen) == len(found) else None
