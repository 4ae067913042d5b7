"""Which process holds a lock of a file or folder, as the kernel lists locks. It takes and breaks none."""

import os
from pathlib import Path
from typing import Final

LOCKS: Final = Path("/proc/locks")

_FLOCK: Final = "FLOCK"


def flock_holder(path: Path, locks: Path = LOCKS) -> int | None:
    """The pid that holds a flock(2) of the file or folder; None where none does, or it cannot be known.

    Of some file systems, such as btrfs, the kernel lists another device than stat(2) gives: there it is not
    known. The form of a line is that of ``lock_get_status`` in fs/locks.c of the kernel:
    ``1: FLOCK  ADVISORY  WRITE 4711 fd:01:1234 0 EOF``.
    """
    try:
        found = path.stat()
        lines = locks.read_text().splitlines()
    except OSError:
        return None
    wanted = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    for line in lines:
        _, *fields = line.split()
        if len(fields) >= 5 and fields[0] == _FLOCK and fields[4] == wanted:
            return int(fields[3])
    return None
