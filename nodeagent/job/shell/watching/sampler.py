"""Measures the processes of a run: what they have read, written and computed since they began.

Of each it reads two small files of ``/proc``, which makes no process wait. Whether a process holds a chip is
the daemon's word. It judges nothing.
"""

from collections.abc import Mapping
from typing import Final

from nodeagent.job.inputs import Process
from nodeagent.job.sample import ProcessSample
from nodeagent.job.shell.processes import procfs
from nodeagent.job.shell.processes.procfs import Stat
from nodeagent.job.shell.processes.tree import Tree

Holders = Mapping[int, tuple[str, ...]]

RANK_VARIABLE: Final = "RANK"
"""Launchers give it to each process that they start for a chip."""

_LOOKS: Final = 2
"""So often a process's environment is read: at the first it may not have done its exec yet."""


class Sampler:
    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._ranks: dict[Process, tuple[int, bool]] = {}

    def measure(self, command: Process, holders: Holders | None) -> tuple[ProcessSample, ...]:
        """All processes of the run. ``holders`` are the chips by the pid, as seen from here, of who holds
        them; None where that is unknown.
        """
        members = self._tree.glance()
        ranks = {each.process: self._look(each.process) for each in members}
        self._ranks = ranks
        starters = {each.ppid for each in members if holders is not None and each.pid in holders}
        return tuple(
            _sample(
                each,
                holders,
                has_rank=ranks[each.process][1],
                is_launcher=each.process == command or each.pid in starters,
            )
            for each in members
        )

    def _look(self, process: Process) -> tuple[int, bool]:
        looks, has_rank = self._ranks.get(process, (0, False))
        if looks < _LOOKS:
            return looks + 1, RANK_VARIABLE in procfs.environment(process.pid)
        return looks, has_rank


def _sample(found: Stat, holders: Holders | None, *, has_rank: bool, is_launcher: bool) -> ProcessSample:
    io = procfs.counters(found.pid)
    chips = () if holders is None else holders.get(found.pid, ())
    holds = None if holders is None else bool(chips)
    return ProcessSample(
        pid=found.pid,
        ppid=found.ppid,
        start_time=found.start_time,
        holds=holds,
        has_rank=has_rank,
        launcher=is_launcher and not holds,
        state=found.state,
        cpu_s=found.cpu_s,
        read_bytes=io.get(b"read_bytes:"),
        write_bytes=io.get(b"write_bytes:"),
        rchar=io.get(b"rchar:"),
        wchar=io.get(b"wchar:"),
        syscr=io.get(b"syscr:"),
        syscw=io.get(b"syscw:"),
        chips=chips,
    )
