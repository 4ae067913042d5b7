"""Measures the processes of a run, and keeps the samples of its newest two hours for ``job replay``.

Of each process it reads two small files of ``/proc``, which makes no process wait. Whether a process uses a
chip is known from the daemon only. It judges nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nodeagent.job.session.values import ProcessId
from nodeagent.job.shell import files, procfs
from nodeagent.job.shell.procfs import Stat
from nodeagent.job.shell.standard_error import print_message
from nodeagent.job.shell.tree import Tree

if TYPE_CHECKING:
    from nodeagent.job.hang.settings import HangSettings
    from nodeagent.job.sample import Beat, ProcessSample, RunSample, StepTime


Holders = Mapping[int, tuple[str, ...]]

RANK_VARIABLE: Final = "RANK"
"""Launchers give it to each process that they start for a chip."""

_LOOKS: Final = 2
"""So often a process's environment is read: at the first it may not have done its exec yet."""


class Sampler:
    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._ranks: dict[ProcessId, tuple[int, bool]] = {}

    def measure(
        self, command: ProcessId, holders: Holders | None, *, waits: bool = False
    ) -> tuple[ProcessSample, ...]:
        """All processes of the run. ``holders`` are the chips by the pid, as seen from here, of who holds
        them; None where that is unknown. ``waits``: also how long ranks waited for a processor.
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
                waits=waits,
            )
            for each in members
        )

    def _look(self, process: ProcessId) -> tuple[int, bool]:
        looks, has_rank = self._ranks.get(process, (0, False))
        if looks < _LOOKS:
            return looks + 1, RANK_VARIABLE in procfs.environment(process.pid)
        return looks, has_rank


def _sample(
    found: Stat, holders: Holders | None, *, has_rank: bool, is_launcher: bool, waits: bool
) -> ProcessSample:
    from nodeagent.job.sample import ProcessSample

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
        cpu_wait_s=procfs.cpu_wait_s(found.pid) if waits and (has_rank or holds) else None,
    )


_HOUR_S: Final = 3600.0


class Ring:
    """``files``: the oldest first. If they cannot be written, one message is printed and the job goes on."""

    def __init__(self, folder: Path | None) -> None:
        names = ("samples.1.jsonl", "samples.jsonl")
        self.files = () if folder is None else tuple(folder / name for name in names)
        self._since_s: float | None = None
        self._is_broken = False

    def begin(self) -> None:
        """A new run begins: the samples of the one before are of no use for it."""
        self._since_s = None
        for file in self.files:
            with suppress(OSError):
                file.unlink(missing_ok=True)

    def keep(
        self,
        settings: HangSettings,
        sample: RunSample,
        beats: tuple[Beat, ...],
        times: tuple[StepTime, ...] = (),
    ) -> None:
        """``beats`` and ``times``: those since the sample before."""
        from nodeagent.job.series import SeriesRow, row_line

        if not self.files:
            return
        try:
            self._make_place(settings, sample.t_s)
            self._write(row_line(SeriesRow(sample=sample, beats=beats, times=times)), os.O_APPEND)
            self._is_broken = False
        except OSError as error:
            if not self._is_broken:
                print_message(f"samples are not kept: {error}")
            self._is_broken = True

    def _make_place(self, settings: HangSettings, t_s: float) -> None:
        from nodeagent.job.series import Header, header_line

        if self._since_s is not None and t_s - self._since_s < _HOUR_S:
            return
        newest = self.files[-1]
        if self._since_s is not None:
            newest.replace(self.files[0])
        header = Header(
            name="live", T_min=settings.hang_time_s / 60, period_s=settings.period_s, kind=settings.kind
        )
        self._write(header_line(header), os.O_TRUNC)
        self._since_s = t_s

    def _write(self, text: str, flag: int) -> None:
        """Raises ``OSError``."""
        descriptor = files.open_own(self.files[-1], os.O_WRONLY | os.O_CREAT | flag, 0o666)
        with open(descriptor, "w", encoding="ascii") as opened:  # noqa: PTH123 # of a descriptor
            opened.write(text)
