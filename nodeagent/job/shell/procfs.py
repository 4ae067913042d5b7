"""Processes as ``/proc`` shows them: all at once, or one. Field numbers are those of proc(5).

A process that has ended meanwhile is left out, or None. It signals nothing.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nodeagent.job.session.values import ProcessId

PROC: Final = "/proc"

_MAX_READ_BYTES: Final = 1 << 20
_MAX_SMALL_BYTES: Final = 4096
"""The size of a file of a line or a few: the memory for more is allocated at each read."""

_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Stat:
    """The fields of ``/proc/PID/stat``: ``group`` is the process group, ``start_time`` is in clock ticks
    since boot.
    """

    pid: int
    state: str
    ppid: int
    group: int
    session: int
    cpu_s: float
    threads: int
    start_time: int

    @property
    def process(self) -> ProcessId:
        return ProcessId(pid=self.pid, start_time=self.start_time)

    @property
    def is_dead(self) -> bool:
        """It only waits to be reaped. A main thread that has ended before the others is a Z, too."""
        return self.state in "ZX" and self.threads <= 1


def read(pid: int, name: str, limit: int = _MAX_READ_BYTES) -> bytes | None:
    """The whole of ``/proc/PID/NAME``; None where there is no such process or it may not be read."""
    try:
        opened = os.open(f"{PROC}/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(opened, limit)
    except OSError:  # ESRCH, once it has ended
        return None
    finally:
        os.close(opened)


def stat(pid: int) -> Stat | None:
    data = read(pid, "stat", _MAX_SMALL_BYTES)
    if not data:
        return None
    # The command is in brackets and may hold blanks and brackets itself.
    fields = data[data.rindex(b")") + 2 :].split()
    return Stat(
        pid=pid,
        state=fields[0].decode(),
        ppid=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        cpu_s=(int(fields[11]) + int(fields[12])) / _TICKS_PER_S,
        threads=int(fields[17]),
        start_time=int(fields[19]),
    )


def pids() -> Iterator[int]:
    """The numbers of all processes that this ``/proc`` shows; none where there is no ``/proc``."""
    try:
        names = os.listdir(PROC)  # noqa: PTH208 # thousands of entries
    except FileNotFoundError:
        names = []
    return (int(name) for name in names if name.isdigit())


def threads(pid: int) -> list[int]:
    """The threads of that process. Raises ``FileNotFoundError``."""
    return sorted(int(each.name) for each in Path(PROC, str(pid), "task").iterdir())


def table() -> dict[int, Stat]:
    """All processes by pid."""
    return {found.pid: found for pid in pids() if (found := stat(pid)) is not None}


def children(pid: int) -> list[int]:
    """The children of a process that has one thread."""
    data = read(pid, f"task/{pid}/children")
    if data is None:  # a kernel without CONFIG_PROC_CHILDREN
        return [each.pid for each in table().values() if each.ppid == pid]
    return [int(child) for child in data.split()]


def descendants(processes: Mapping[int, Stat], roots: Iterable[int], excluded: frozenset[int]) -> set[int]:
    """The pids below the roots, without the roots; nothing of ``excluded``, nor what is below that."""
    children: dict[int, list[int]] = {}
    for each in processes.values():
        children.setdefault(each.ppid, []).append(each.pid)
    found: set[int] = set()
    open_ends = list(roots)
    while open_ends:
        for pid in children.get(open_ends.pop(), ()):
            if pid not in excluded and pid not in found:
                found.add(pid)
                open_ends.append(pid)
    return found


def counters(pid: int) -> dict[bytes, int]:
    """The counters of ``/proc/PID/io``; {} where it may not be read."""
    items = (read(pid, "io", _MAX_SMALL_BYTES) or b"").split()
    return {name: int(value) for name, value in zip(items[::2], items[1::2], strict=True)}


def cpu_wait_s(pid: int) -> float | None:
    """How long its first thread could run and waited for a processor: the second number of
    ``/proc/PID/schedstat`` (Documentation/scheduler/sched-stats of the kernel). None where it is not shown.
    """
    fields = (read(pid, "schedstat", _MAX_SMALL_BYTES) or b"").split()
    return int(fields[1]) / 1e9 if len(fields) > 1 else None


def environment(pid: int) -> dict[str, str]:
    """As it was at the process's exec; {} where it may not be read."""
    data = read(pid, "environ") or b""
    pairs = (entry.partition(b"=") for entry in data.split(b"\0") if entry)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}


def boot_id() -> str:
    """The id of this boot of the machine; "" if ``/proc`` does not show it."""
    try:
        with open(f"{PROC}/sys/kernel/random/boot_id", encoding="ascii") as opened:  # noqa: PTH123 # pathlib costs milliseconds
            return opened.read().strip()
    except OSError:
        return ""


def catches(pid: int, number: int) -> bool:
    """Whether it catches the signal, by the mask in ``status``."""
    for line in (read(pid, "status") or b"").splitlines():
        if line.startswith(b"SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False
