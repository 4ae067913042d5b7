"""What the kernel says of a process: its command, its parent, when it began, and the job that it belongs to.

The job is read from the names of its cgroups, which Slurm, Kubernetes and the container engines choose. Of
the command only its name is read: its arguments may hold secrets. No process is touched.
"""

import re
from pathlib import Path
from typing import Final

MAX_READ_BYTES: Final = 64 * 1024

_SLURM: Final = re.compile(r"/slurm[^/]*/uid_\d+/job_(\d+)(?:/step_(\w+))?")
_SLURM_UNIFIED: Final = re.compile(r"slurmstepd\.scope/job_(\d+)(?:/step_(\w+))?")

_UID: Final = r"[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32}"
_POD: Final = re.compile(rf"kubepods(?:[/.-].*)?[/-]pod({_UID})(?![0-9a-f])")
"""systemd's slices have ``_`` in place of ``-``; a static pod's uid is a digest without either."""

_CONTAINER: Final = re.compile(r"(?:[/:]|/\w+-|/cri-containerd-)([0-9a-f]{64})(?:\.scope)?(?=/|$)")
"""``docker/ID``, ``docker-ID.scope``, ``cri-containerd-ID.scope``, ``crio-ID.scope``, ``libpod-ID.scope``;
a monitor of an engine (``libpod-conmon-ID.scope``) is not in the container."""

PARENT: Final = 1
USER: Final = 11
SYSTEM: Final = 12
START: Final = 19
"""Fields of ``stat`` behind the command: the parent's pid; in clock ticks, computed itself, by the kernel for
it, and its start since boot.
"""

_SHOWN_DIGITS: Final = 12
"""So many digits of a container's id as the engines show."""


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


def stat_of(folder: Path) -> tuple[str, list[str]]:
    """The command as it stands in the ``stat`` of a process or thread, and the fields behind it.

    Raises ``OSError``: ``ProcessLookupError`` or ``FileNotFoundError`` once it has ended.
    """
    head, _, tail = read(folder / "stat").rpartition(")")
    return head.partition("(")[2], tail.split()


def printable(command: str) -> str:
    """Whoever starts a process may choose its command."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in command)


def read(file: Path) -> str:
    """The text of a file of a process: bounded, and never a failure to decode. Raises ``OSError``."""
    with file.open("rb") as opened:
        return opened.read(MAX_READ_BYTES).decode("utf-8", "replace")
