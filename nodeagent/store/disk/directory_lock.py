"""One process has the store's directory. It says nothing of what lies in it."""

import fcntl
import os
from pathlib import Path

from nodeagent.store.errors import StoreInUseError


class DirectoryLock:
    """Held for as long as any thread of this process may write to the directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._fd: int | None = None

    def take(self) -> None:
        """Make the directory if need be; raise StoreInUseError if another process holds it, else OSError."""
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o750)
        if self._fd is not None:
            if os.path.samestat(os.fstat(self._fd), self._directory.stat()):
                return
            # The directory that was locked has been removed and is another one now.
            self.give()
        fd = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(fd)
            raise StoreInUseError(f"{self._directory} is in use by another nodeagent") from error
        except OSError:
            os.close(fd)
            raise
        self._fd = fd

    def give(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
