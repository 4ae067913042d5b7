"""The end of what a run writes to the standard error, where that is a file. It writes nothing there."""

import os
import stat
from typing import Final

_STDERR: Final = 2


def size() -> int | None:
    """The size of the file at descriptor 2; None where it is none: a pipe or a terminal keeps nothing."""
    try:
        found = os.fstat(_STDERR)
    except OSError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def appended(since: int, limit: int) -> bytes:
    """What stands behind ``since``, at most the last ``limit`` bytes. Raises ``OSError``."""
    end = size()
    if end is None or end <= since:
        return b""
    # By its name in /proc: the descriptor itself may be open for writing only, and its place is others'.
    opened = os.open(f"/proc/self/fd/{_STDERR}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(opened, min(limit, end - since), max(since, end - limit))
    finally:
        os.close(opened)
