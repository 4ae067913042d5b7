"""Stand-ins for /dev/kmsg where the real one cannot do what a test needs: chosen numbers, or going away."""

import os
import tty
from pathlib import Path


class KernelLogDouble:
    """A FIFO whose records wait for whoever opens ``path`` next."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "kmsg"
        os.mkfifo(self.path)
        self._descriptor = os.open(self.path, os.O_RDWR)

    def close(self) -> None:
        os.close(self._descriptor)

    def write(self, seq: int, message: str, *, facility: int = 0, boottime_us: int = 1) -> None:
        self.write_raw(f"{facility << 3 | 3},{seq},{boottime_us},-;{message}\n".encode())

    def write_raw(self, data: bytes) -> None:
        os.write(self._descriptor, data)


class VanishingKernelLog(KernelLogDouble):
    """A character device that can really vanish, and come back under its path offering its ring anew.

    It is a pseudo terminal in raw mode behind a symbolic link. What is written reaches a reader a
    moment later, so a test waits for what it wrote and never for silence.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "kmsg"
        self.ring: list[bytes] = []
        self.appear()

    def appear(self) -> None:
        self._descriptor, self._slave = os.openpty()
        tty.setraw(self._slave)
        self.path.symlink_to(os.ttyname(self._slave))
        for record in self.ring:
            os.write(self._descriptor, record)

    def vanish(self) -> None:
        """Whoever reads it gets an error or an end, and the path is gone."""
        self.path.unlink()
        os.close(self._slave)
        os.close(self._descriptor)
        self._descriptor = -1

    def close(self) -> None:
        if self._descriptor >= 0:
            self.vanish()

    def write_raw(self, data: bytes) -> None:
        self.ring.append(data)
        super().write_raw(data)
