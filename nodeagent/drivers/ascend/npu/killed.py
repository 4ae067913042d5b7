"""Which processes the vendor's library itself kills at a reset: those that root has put on its list.

``dcmi_clear_running_proc`` of the vendor's dcmi_hot_reset_intf.c reads the list before it resets a 910B or an
A3, and sends SIGKILL to each process on it that holds any NPU of the machine, also one that is not reset.
This reads the same, to report it beforehand; it kills nobody.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

MAX_LINES: Final = 10
"""The library reads no more of them."""

_KEY: Final = "AllowKilledWhenResetNPU"


def listed(procfs: Path, kill_list: Path) -> dict[int, str]:
    """Pid -> name, of those that run under that name. A line: ``AllowKilledWhenResetNPU:NAME:PID``.

    Empty where there is no list. Raises ``OSError`` where it cannot be read.
    """
    try:
        lines = kill_list.read_text(errors="replace").splitlines()[:MAX_LINES]
    except FileNotFoundError:
        return {}
    return {pid: name for pid, name in _named(lines) if _runs(procfs, pid, name)}


def _named(lines: list[str]) -> Iterator[tuple[int, str]]:
    for line in lines:
        words = [word for word in line.replace(" ", "").split(":") if word]
        if len(words) == 3 and words[0] == _KEY and words[2].isascii() and words[2].isdigit():
            yield int(words[2]), words[1]


def _runs(procfs: Path, pid: int, name: str) -> bool:
    try:
        status = (procfs / str(pid) / "status").read_text(errors="replace")
    except OSError:
        return False
    return status.splitlines()[0].removeprefix("Name:").split()[:1] == [name]
