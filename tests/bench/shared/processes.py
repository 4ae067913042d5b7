"""What a process and its children cost, from /proc: time on the processor, memory that is theirs."""

import contextlib
import os
from collections import Counter
from pathlib import Path

PROC = Path("/proc")


def tree(pid: int) -> list[int]:
    """The process and everything it started, still alive."""
    parents: dict[int, int] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                # The name in parentheses may hold anything; the parent is the second field after it.
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found = [pid]
    for known in found:
        found += [child for child, parent in parents.items() if parent == known]
    return found


def name(pid: int) -> str:
    """The daemon, or which driver's worker it is."""
    words = (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    return words[words.index(b"nodeagent.worker") + 1].decode() if b"nodeagent.worker" in words else "daemon"


def cpu_ns(pids: list[int]) -> int:
    """Time on a processor of all their threads, nanoseconds."""
    return sum(
        int(path.read_text().split()[0]) for pid in pids for path in PROC.glob(f"{pid}/task/*/schedstat")
    )


def spent_ns(pid: int) -> int:
    """Time on a processor of one process, also of its threads that have ended; to a hundredth of a second."""
    words = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    # The 14th and 15th field of proc(5), utime and stime; the first two stand before the parenthesis.
    return (int(words[11]) + int(words[12])) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def pss_bytes(pids: list[int]) -> int:
    """Proportional set size as the kernel counts it now: pages that strangers map too count less."""
    total = 0
    for pid in pids:
        for line in (PROC / str(pid) / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
    return total


def alone_bytes(pids: list[int]) -> int:
    """The same as if no other process mapped these files, as on a machine without a second Python."""
    anonymous = 0
    of_file: Counter[tuple[str, str]] = Counter()
    for pid in pids:
        for key, file_bytes, anonymous_bytes in _mappings(pid):
            anonymous += anonymous_bytes
            of_file[key] = max(of_file[key], file_bytes)
    return anonymous + of_file.total()


def _mappings(pid: int) -> list[tuple[tuple[str, str], int, int]]:
    """(inode and offset, bytes of the file's own pages, bytes of pages of the process's own)."""
    found = []
    key, resident = ("", ""), 0
    for line in (PROC / str(pid) / "smaps").read_text().splitlines():
        words = line.split()
        if not words[0].endswith(":"):
            key = (words[4], words[2])
        elif words[0] == "Rss:":
            resident = int(words[1]) * 1024
        elif words[0] == "Anonymous:":
            own = int(words[1]) * 1024
            found.append((key, resident - own, own))
    return found
