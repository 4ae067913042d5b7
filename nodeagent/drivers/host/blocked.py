"""Processes on accelerators that are blocked in the kernel (state D): even when killed, they release no chip.

All processes are checked once a minute; those found in state D are checked at each poll after that. A process
counts once it has been in that state for a minute without using any processor time. Its open device files
show which accelerators it uses. Where they cannot be seen (the daemon's unit lacks CAP_SYS_PTRACE), a process
of a job counts. If the first thread of a process has ended, its other threads are checked. A blocked thread
next to running ones is not found here; the kernel's own line (``HUNG_TASK``) reports it. No process is ended.
"""

import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from nodeagent.core.model import NODE
from nodeagent.drivers.host.check import CheckResult, Hardware, optional
from nodeagent.system.job_cgroups import job_of_process
from nodeagent.system.processes import printable, stat_of

CODE: Final = "PROCESS_BLOCKED"

SCAN_S: Final = 60.0
LASTS_S: Final = 60.0
MAX_NAMED: Final = 4
"""So many processes are named in the evidence."""

_DEVICE: Final = re.compile(r"/dev/(nvidia\d+|davinci\d+)(?: \(deleted\))?")
_STATE, _FLAGS, _USER, _SYSTEM, _START = 0, 6, 11, 12, 19
"""Fields of ``stat`` behind the command (proc_pid_stat(5))."""
_KERNEL_THREAD: Final = 0x0020_0000
"""PF_KTHREAD of include/linux/sched.h."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """A process, or a thread of it (``task``), in state D: since when, as far as was seen."""

    pid: int
    task: str
    command: str
    start: str
    ticks: int
    since_s: float

    def is_same(self, other: "Blocked") -> bool:
        """It has not run in between."""
        return (self.task, self.start, self.ticks) == (other.task, other.start, other.ticks)


class BlockedProcesses:
    def __init__(self, procfs: Path, hardware: Hardware, now_s: Callable[[], float] = time.monotonic) -> None:
        self._procfs = procfs
        self._hardware = hardware
        self._now_s = now_s
        self._scanned_s = float("-inf")
        self._known: dict[int, Blocked] = {}

    def is_here(self) -> bool:
        return bool(self._hardware.functions().accelerators)

    def look(self) -> CheckResult:
        if not self.is_here():
            return CheckResult()
        now_s = self._now_s()
        pids = list(self._known)
        if now_s - self._scanned_s >= SCAN_S:
            self._scanned_s = now_s
            pids = [int(entry.name) for entry in os.scandir(self._procfs) if entry.name.isdigit()]
        before, self._known = self._known, {}
        for blocked in filter(None, (self._blocked(pid, now_s) for pid in pids)):
            known = before.get(blocked.pid)
            since_s = known.since_s if known is not None and known.is_same(blocked) else now_s
            self._known[blocked.pid] = replace(blocked, since_s=since_s)
        lasting = (each for each in self._known.values() if now_s - each.since_s >= LASTS_S)
        texts = [text for each in lasting if (text := self._text_of(each, now_s))]
        if not texts:
            return CheckResult()
        evidence = {"processes": "; ".join(texts[:MAX_NAMED]), "number": str(len(texts))}
        return CheckResult(active={(NODE, CODE): evidence})

    def _blocked(self, pid: int, now_s: float) -> Blocked | None:
        """None where it is not, has ended, or is the kernel's own."""
        folder = self._procfs / str(pid)
        try:
            _, fields = stat_of(folder)
            has_ended = fields[_STATE] == "Z"
            if fields[_STATE] != "D" and not has_ended:
                return None
            for task in (folder / "task").iterdir() if has_ended else (folder,):
                command, fields = stat_of(task)
                if fields[_STATE] == "D" and not int(fields[_FLAGS]) & _KERNEL_THREAD:
                    ticks = int(fields[_USER]) + int(fields[_SYSTEM])
                    start = fields[_START]
                    return Blocked(
                        pid=pid, task=task.name, command=command, start=start, ticks=ticks, since_s=now_s
                    )
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            return None
        return None

    def _text_of(self, blocked: Blocked, now_s: float) -> str:
        """Empty where it is not known to be of an accelerator or of a job."""
        folder = self._procfs / str(blocked.pid)
        try:
            job = job_of_process(self._procfs, blocked.pid)
        except (FileNotFoundError, ProcessLookupError):
            return ""
        try:
            devices = ", ".join(sorted(set(_devices(folder / "fd"))))
        except PermissionError:
            devices = "not visible" if job else ""
        except (FileNotFoundError, ProcessLookupError):
            return ""
        if not devices:
            return ""
        where = _kernel_function(folder / "task" / blocked.task / "wchan")
        parts = [
            f"{printable(blocked.command)} {blocked.pid}",
            f"{now_s - blocked.since_s:.0f} s",
            f"devices {devices}",
        ]
        parts += [f"job {job}"] * bool(job) + [f"in {where}"] * bool(where)
        return ", ".join(parts)


def _devices(folder: Path) -> Iterator[str]:
    for entry in folder.iterdir():
        try:
            found = _DEVICE.search(str(entry.readlink()))
        except FileNotFoundError:
            continue
        if found is not None:
            yield found[1]


def _kernel_function(file: Path) -> str:
    """Where it waits; empty where that is not known, or may not be seen."""
    try:
        name = optional(file)
    except PermissionError:
        return ""
    return "" if name == "0" else name
