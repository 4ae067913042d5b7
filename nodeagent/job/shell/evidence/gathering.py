"""The evidence of a hang, gathered by a child process: begun, waited for, cut off in time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from nodeagent.job.inputs import Gathered, Given, Process
from nodeagent.job.model import SECOND_NS
from nodeagent.job.orders import Gather
from nodeagent.job.shell.messages import print_message
from nodeagent.job.shell.processes.tree import Tree

if TYPE_CHECKING:
    from nodeagent.job.shell.disk.state import State
    from nodeagent.job.shell.evidence.evidence import EvidenceProcess


class Gathering:
    """One at a time. ``samples``: the files of what was measured, the oldest first."""

    def __init__(self, state: State | None, tree: Tree, samples: Iterable[Path]) -> None:
        self._state = state
        self._tree = tree
        self._samples = tuple(samples)
        self._run = 0
        self._process: EvidenceProcess | None = None
        self._due_ns: int | None = None
        self._found: list[Given] = []

    def begin(self, order: Gather, ranks: tuple[Process, ...], now_ns: int) -> None:
        from nodeagent.job.shell.evidence import evidence

        self._cut_off()
        self._run = order.run
        if self._state is None:
            self._found.append(Gathered(run=order.run, path=""))
            return
        wanted = evidence.Wanted(
            run=order.run,
            members=[each.process for each in self._tree.members()],
            ranks=ranks,
            aborts=order.run_ends,
            samples=self._samples,
            within_s=order.within_s,
        )
        try:
            self._process = evidence.begin(self._state, wanted)
        except OSError as error:
            print_message(f"no evidence of the hang is kept: {error}")
            self._found.append(Gathered(run=order.run, path=""))
            return
        self._tree.exclude(self._process.pid)
        self._due_ns = now_ns + round(order.within_s * SECOND_NS)

    def next_deadline_ns(self) -> int | None:
        return self._due_ns

    def tick(self, now_ns: int) -> None:
        if self._process is not None and self._due_ns is not None and now_ns >= self._due_ns:
            self._finished(self._process)
            self._cut_off()

    def ended(self, pid: int) -> None:
        """A child that was not the command has ended."""
        if self._process is not None and pid == self._process.pid:
            self._finished(self._process)
            self._cut_off()

    def take(self) -> list[Given]:
        """What was found since the last call."""
        found, self._found = self._found, []
        return found

    def _finished(self, process: EvidenceProcess) -> None:
        self._found.append(Gathered(run=self._run, path=str(process.folder), digest=process.digest()))

    def _cut_off(self) -> None:
        if self._process is not None:
            self._process.end()
        self._process = None
        self._due_ns = None
