"""Which processes hold a chip, as the library lists them. It ends none."""

from pathlib import Path

from nodeagent.drivers.api import CallFailed
from nodeagent.drivers.ascend.library.chip import Chip
from nodeagent.drivers.ascend.library.errors import Nonsense
from nodeagent.drivers.ascend.npu.chip.refusals import Refusals
from nodeagent.drivers.shared.holders import holder_of
from nodeagent.wire import Holder


class Processes:
    """The processes on one chip. ``refused`` counts values that cannot be."""

    def __init__(self, chip: Chip, procfs: Path, refusals: Refusals) -> None:
        self.refused = 0
        self._chip = chip
        self._procfs = procfs
        self._refusals = refusals
        self._holders: dict[int, Holder] = {}

    def holders(self, *, slow_round: bool, anew: bool) -> tuple[Holder, ...] | None:
        """Who holds the chip, by pid; None where that cannot be read. ``anew``: also those that are known are
        looked at.
        """
        if not self._refusals.asks("processes", slow_round=slow_round):
            return None
        try:
            pids = self._chip.processes()
        except Nonsense:
            self.refused += 1
            return None
        except CallFailed:
            self._refusals.note("processes", refused=True)
            return None
        self._refusals.note("processes", refused=False)
        if any(pid <= 0 for pid in pids):
            self.refused += 1
            return None
        known = {} if anew else self._holders
        self._holders = {pid: known.get(pid) or self._holder(pid) for pid in pids}
        return tuple(self._holders[pid] for pid in sorted(self._holders))

    def _holder(self, pid: int) -> Holder:
        """One that cannot be looked at holds the chip all the same."""
        return holder_of(self._procfs, pid) or Holder(pid=pid, start_time=0, command="")
