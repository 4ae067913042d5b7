"""Who holds a device: the process behind a pid that a driver named, with the job it belongs to.

The job is read from the names of its cgroups, which Slurm, Kubernetes and the container engines choose.
Of the command only its name is reported: its arguments may hold secrets. No process is touched.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from nodeagent.wire import Holder

MAX_READ_BYTES: Final = 64 * 1024

_SLURM: Final = re.compile(r"/slurm[^/]*/uid_\d+/job_(\d+)(?:/step_(\w+))?")
_SLURM_UNIFIED: Final = re.compile(r"slurmstepd\.scope/job_(\d+)(?:/step_(\w+))?")

_UID: Final = r"[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32}"
_POD: Final = re.compile(rf"kubepods(?:[/.-].*)?[/-]pod({_UID})(?![0-9a-f])")
"""systemd's slices have ``_`` in place of ``-``; a static pod's uid is a digest without either."""

_CONTAINER: Final = re.compile(r"(?:[/:]|/\w+-|/cri-containerd-)([0-9a-f]{64})(?:\.scope)?(?=/|$)")
"""``docker/ID``, ``docker-ID.scope``, ``cri-containerd-ID.scope``, ``crio-ID.scope``, ``libpod-ID.scope``;
a monitor of an engine (``libpod-conmon-ID.scope``) is not in the container."""

_USER, _SYSTEM, _START = 11, 12, 19
"""Fields of ``stat`` behind the command, in clock ticks: computed itself, by the kernel for it, its start."""

_SHOWN_DIGITS: Final = 12
"""So many digits of a container's id as the engines show."""


def holder_of(procfs: Path, pid: int) -> Holder | None:
    """The process, or None if there is none, or another one has taken its number meanwhile.

    ``procfs`` is the root that holds ``PID/stat``. A process that may not be looked at is reported without
    its start, command and job: it holds the device all the same.
    """
    folder = procfs / str(pid)
    try:
        command, start_time = _stat(folder)
        job = job_of(_read(folder / "cgroup"))
        if _stat(folder)[1] != start_time:
            return None
    except (FileNotFoundError, ProcessLookupError):
        return None
    except PermissionError:
        return Holder(pid=pid, start_time=0, command="")
    return Holder(pid=pid, start_time=start_time, command=command, job=job)


def cpu_time_s(procfs: Path, holders: Iterable[Holder]) -> float | None:
    """What these have computed since they began, in all threads; None where one of them cannot be read."""
    ticks = 0
    for holder in holders:
        try:
            fields = stat_of(procfs / str(holder.pid))[1]
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            return None
        if int(fields[_START]) != holder.start_time:
            return None
        ticks += int(fields[_USER]) + int(fields[_SYSTEM])
    return ticks / os.sysconf("SC_CLK_TCK")


def job_of(cgroup: str) -> str:
    """From the text of a process's ``cgroup`` file, of either version: ``slurm:JOB.STEP``, ``pod:UID``,
    ``container:ID``, the first of these that there is, else "".
    """
    paths = "\n".join(line.split(":", 2)[-1] for line in cgroup.splitlines())
    if slurm := _SLURM.search(paths) or _SLURM_UNIFIED.search(paths):
        job, step = slurm.groups()
        return f"slurm:{job}.{step}" if step else f"slurm:{job}"
    if pod := _POD.search(paths):
        return f"pod:{pod[1].replace('_', '-')}"
    # Of containers in a container the innermost: the job's own.
    containers = [found[1] for line in paths.splitlines() for found in _CONTAINER.finditer(line)]
    return f"container:{containers[-1][:_SHOWN_DIGITS]}" if containers else ""


def _stat(folder: Path) -> tuple[str, int]:
    """(command, start time in clock ticks since boot); a command may hold blanks and brackets itself."""
    command, fields = stat_of(folder)
    return printable(command), int(fields[_START])


def printable(command: str) -> str:
    """Whoever starts a process may choose its command."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in command)


def stat_of(folder: Path) -> tuple[str, list[str]]:
    """The command as it stands in the ``stat`` of a process or thread, and the fields behind it.

    Raises ``OSError``: ``ProcessLookupError`` or ``FileNotFoundError`` once it has ended.
    """
    head, _, tail = _read(folder / "stat").rpartition(")")
    return head.partition("(")[2], tail.split()


def _read(file: Path) -> str:
    with file.open("rb") as opened:
        return opened.read(MAX_READ_BYTES).decode("utf-8", "replace")
