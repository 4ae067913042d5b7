"""Space kept in reserve on the store's filesystem, given back at the first sign that it is full.

It only makes and removes one file; when to do so is the writer's and retention's decision.
"""

import os
from pathlib import Path

# Refilling the space must not be what fills the disk again.
_HEADROOM = 4


class ReservedSpace:
    """One file of ``size`` bytes, 0 for none. Its calls raise OSError."""

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        self._size = size

    def release(self) -> bool:
        """Give the space back; False if there was none to give."""
        try:
            self._path.unlink()
        except FileNotFoundError:
            return False
        return True

    def refill(self) -> bool:
        """Make the file again if it is missing and there is room for four of it; say whether it exists."""
        if self._path.exists():
            return True
        free = os.statvfs(self._path.parent)
        if self._size == 0 or free.f_bavail * free.f_frsize < _HEADROOM * self._size:
            return False
        fd = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(fd, 0, self._size)
        except OSError:
            self._path.unlink()
            raise
        finally:
            os.close(fd)
        return True
