"""The descriptor of the kernel log, and the account of its sequence numbers.

Reading begins at the oldest record the ring holds and never seeks to the end. When records were
overwritten before they were read, the kernel reports it once (EPIPE) and goes on at the oldest it
still has; the sequence number of that record shows exactly how many were lost. No time is missed: the next
read follows at once.

It knows nothing of patterns or signals.
"""

import errno
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from nodeagent.drivers.api import Unavailable
from nodeagent.drivers.kmsg.parse import MalformedRecord, Record, parse, split

READ_BYTES: Final = 16384
"""More than the kernel's longest record (8192): a shorter buffer would get EINVAL for ever."""

CHUNK_RECORDS: Final = 128

_HINTS: Final = {
    errno.EPERM: "the kernel refuses: it wants CAP_SYSLOG (kernel.dmesg_restrict); in a systemd unit"
    " CapabilityBoundingSet= and AmbientCapabilities= must hold CAP_SYSLOG and DeviceAllow= must hold"
    " '{path} r'",
    errno.EACCES: "this user may not read it: run as root, or in a systemd unit set User=root, or"
    " AmbientCapabilities=CAP_SYSLOG with a group that may read it",
    errno.ENOENT: "there is no such file: in a systemd unit PrivateDevices=yes hides it (use"
    " DevicePolicy=closed with DeviceAllow={path} r); in a container it must be passed in",
}


class SourceGone(Exception):
    """The open descriptor can no longer be read."""

    def __init__(self, reason: str, number: int) -> None:
        super().__init__(reason)
        self.errno = number


@dataclass(slots=True)
class Chunk:
    """What one round of reads gave. ``drained``: nothing more lies there now."""

    records: list[Record] = field(default_factory=list)
    malformed: int = 0
    drained: bool = False


class KernelLog:
    """``path`` is ``/dev/kmsg``, or a FIFO in its place where there is no kernel log."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1
        self._cut_short = b""

    def fileno(self) -> int:
        return self._descriptor

    def open(self) -> None:
        """Open, or open again, at the oldest record. Raises ``Unavailable`` with what to change."""
        self.close()
        try:
            mode = Path(self._path).stat().st_mode
            if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
                raise Unavailable(
                    f"{self._path} is neither a character device nor a FIFO; to read a log file use"
                    " 'nodeagent replay'",
                    errno=errno.EINVAL,
                )
            # A FIFO open for reading only would be at its end whenever no writer is there.
            access = os.O_RDWR if stat.S_ISFIFO(mode) else os.O_RDONLY
            self._descriptor = os.open(self._path, access | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError as error:
            number = error.errno or 0
            hint = _HINTS.get(number, "").format(path=self._path)
            raise Unavailable(
                f"cannot open {self._path}: {error.strerror}" + (f"; {hint}" if hint else ""),
                errno=number,
                absent=number == errno.ENOENT,
            ) from error

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1
        self._cut_short = b""

    def rewind(self) -> None:
        """Back to the oldest record; a FIFO has none."""
        try:
            os.lseek(self._descriptor, 0, os.SEEK_SET)
        except OSError as error:
            if error.errno != errno.ESPIPE:
                raise SourceGone(f"cannot rewind {self._path}: {error.strerror}", error.errno or 0) from error

    def read(self) -> Chunk:
        """At most ``CHUNK_RECORDS`` reads, without waiting. Raises ``SourceGone``."""
        chunk = Chunk()
        for _ in range(CHUNK_RECORDS):
            try:
                data = os.read(self._descriptor, READ_BYTES)
            except BlockingIOError:
                chunk.drained = True
                break
            except OSError as error:
                if error.errno == errno.EPIPE:
                    continue
                raise SourceGone(
                    f"reading {self._path} failed: {error.strerror}", error.errno or 0
                ) from error
            if not data:
                raise SourceGone(f"{self._path} was closed", 0)
            for raw in split(self._whole(data)):
                try:
                    chunk.records.append(parse(raw))
                except MalformedRecord:
                    chunk.malformed += 1
        return chunk

    def _whole(self, data: bytes) -> bytes:
        """What a FIFO cut short waits for its rest; the device itself gives whole records only."""
        data = self._cut_short + data
        end = data.rfind(b"\n") + 1
        self._cut_short = data[end:][:READ_BYTES]
        return data[:end]


class Account:
    """Which records are accounted for. ``position`` is the last of them, None before the first."""

    def __init__(self, position: int | None) -> None:
        self.position = position
        self._newest: int | None = None

    def admit(self, seq: int) -> int | None:
        """How many records were lost before this one; None if it was accounted for before."""
        self._newest = seq
        if self.position is None:
            self.position = seq
            return 0
        if seq <= self.position:
            return None
        lost = seq - self.position - 1
        self.position = seq
        return lost

    def disown(self) -> bool:
        """Whether the log ends before ``position``, which then is of another log and is dropped."""
        foreign = self._newest is not None and self.position is not None and self._newest < self.position
        if foreign:
            self.position = None
        return foreign
