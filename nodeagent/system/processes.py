"""The state of a process in /proc: its command, its parent, its start, and whether it is about to end.

Only the name of the command is read, because its arguments may hold secrets. No process is touched.
"""

import re
import signal
from collections.abc import Iterator
from enum import Enum, auto
from pathlib import Path
from typing import Final

MAX_READ_BYTES: Final = 64 * 1024

STATE: Final = 0
PARENT: Final = 1
FLAGS: Final = 6
USER: Final = 11
SYSTEM: Final = 12
START: Final = 19
"""Fields of ``stat`` behind the command (proc_pid_stat(5)): its state, the parent's pid, its flags; in clock
ticks, computed itself, by the kernel for it, and its start since boot.
"""

ENDED: Final = ("Z", "X")
"""States of a process that has ended: its parent has not waited for it yet, or it is being removed."""

_EXITING: Final = 0x4
"""PF_EXITING of include/linux/sched.h: it is on its way out, and gives back what it has open."""

_PENDING: Final = re.compile(r"^(?:SigPnd|ShdPnd):\s*([0-9a-f]+)$", re.MULTILINE)
"""The signals that wait for a thread, and for the whole process (proc_pid_status(5))."""

_USERS: Final = re.compile(r"^Uid:(.*)$", re.MULTILINE)

_KILL: Final = 1 << (signal.SIGKILL - 1)


class ProcessLife(Enum):
    """``ENDING``: it was killed, or ends by itself, and the kernel has not let it go yet. With each process
    that takes a moment; one that hangs in a driver stays so.
    """

    GONE = auto()
    RUNNING = auto()
    ENDING = auto()


def life_of(procfs: Path, pid: int, start_time: int) -> ProcessLife:
    """Of the process with that pid which began then. One that may not be looked at runs.

    A KILL goes to each thread and waits for it there (``complete_signal`` of kernel/signal.c); a thread that
    has taken it is on its way out, and the KILL of the whole process stays. Once the first thread has ended,
    the others show it.
    """
    folder = procfs / str(pid)
    try:
        fields = stat_of(folder)[1]
        if int(fields[START]) != start_time:
            return ProcessLife.GONE
        if fields[STATE] not in ENDED:
            return ProcessLife.ENDING if _is_ending(folder, fields) else ProcessLife.RUNNING
        return _life_of_threads(folder)
    except (FileNotFoundError, ProcessLookupError):
        return ProcessLife.GONE
    except PermissionError:
        return ProcessLife.RUNNING


def _life_of_threads(folder: Path) -> ProcessLife:
    life = ProcessLife.GONE
    for task in (folder / "task").iterdir():
        fields = stat_of(task)[1]
        if fields[STATE] in ENDED:
            continue
        if _is_ending(task, fields):
            return ProcessLife.ENDING
        life = ProcessLife.RUNNING
    return life


def _is_ending(folder: Path, fields: list[str]) -> bool:
    if int(fields[FLAGS]) & _EXITING:
        return True
    return any(int(mask, 16) & _KILL for mask in _PENDING.findall(read(folder / "status")))


def stat_of(folder: Path) -> tuple[str, list[str]]:
    """The command in the ``stat`` of a process or thread, and the fields behind it.

    Raises ``OSError``: ``ProcessLookupError`` or ``FileNotFoundError`` once it has ended.
    """
    head, _, tail = read(folder / "stat").rpartition(")")
    return head.partition("(")[2], tail.split()


def ancestry(pid: int, procfs: Path) -> Iterator[tuple[int, int]]:
    """(pid, start time) of the process and of those above it, as far up as they can be seen."""
    seen = set[int]()
    while pid > 0 and pid not in seen:
        seen.add(pid)
        try:
            fields = stat_of(procfs / str(pid))[1]
        except OSError:
            return
        yield pid, int(fields[START])
        pid = int(fields[PARENT])


def users_of(folder: Path) -> list[int]:
    """The uids of a process: real, effective, saved, of file systems (proc_pid_status(5)). Raises
    ``OSError``.
    """
    found = _USERS.search(read(folder / "status"))
    return [] if found is None else [int(number) for number in found[1].split()]


def printable(command: str) -> str:
    """A user can choose the command of a process: characters that are not printable are replaced."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in command)


def read(file: Path) -> str:
    """The text of a file of a process: bounded, and never a failure to decode. Raises ``OSError``."""
    with file.open("rb") as opened:
        return opened.read(MAX_READ_BYTES).decode("utf-8", "replace")
