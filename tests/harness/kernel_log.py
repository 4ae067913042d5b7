"""Kernel logs for tests: ``/dev/kmsg`` itself, and a double where a test chooses the records.

A double never limits or loses records by itself, as the kernel does; tests of that use the real log.
"""

import os
import tty
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Final
from uuid import uuid4

KMSG: Final = Path("/dev/kmsg")
KMSG_RATE: Final = Path("/proc/sys/kernel/printk_devkmsg")
KMSG_LOCK: Final = Path("/run/lock/nodeagent-tests-kmsg")
"""The kernel log is one for the machine: who writes to it, or changes its rate, holds this lock."""

STORY_TABLE: Final = """
kind = "host"
vendor = "stories"

[[pattern]]
id = "STORY"
code = "{{code}}"
device = "device"
regex = '''^story-{token} (?P<device>\\S+) (?P<code>[A-Z][A-Z0-9_]*)'''

[codes.BRIEF]
name = "gone when a second was quiet"
level = "PreSeparateFault"
clear_on = ["1s"]

[codes.STORM]
name = "comes often"
level = "SubHealthFault"
clear_on = ["10m"]

[codes.BOOT]
name = "gone when a boot did not show it again"
level = "PreSeparateFault"
clear_on = ["reboot"]

[codes."LASTING_*"]
name = "stays until a person sees to it"
level = "SubHealthFault"
clear_on = ["operator"]
"""


class KernelLogDouble:
    """A FIFO in place of ``/dev/kmsg``. Its records wait for the next reader of ``path``."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "kmsg"
        self.last_seq = 0
        os.mkfifo(self.path)
        self._descriptor = os.open(self.path, os.O_RDWR)
        self._close = weakref.finalize(self, os.close, self._descriptor)

    def close(self) -> None:
        self._close()

    def append(self, message: str, *, facility: int = 0) -> None:
        """A record with the next number."""
        self.write(self.last_seq + 1, message, facility=facility)

    def write(self, seq: int, message: str, *, facility: int = 0, boottime_us: int = 1) -> None:
        """A record with this number, also one that was there before: a ring offers it to each new reader."""
        self.last_seq = max(self.last_seq, seq)
        self.write_raw(f"{facility << 3 | 3},{seq},{boottime_us},-;{message}\n".encode())

    def write_raw(self, data: bytes) -> None:
        os.write(self._descriptor, data)


class VanishingKernelLog(KernelLogDouble):
    """A character device that can vanish. When it is back under its path, it offers its ring again.

    It is a pseudo terminal in raw mode behind a symbolic link. A reader sees what is written a moment later,
    so a test waits for what it wrote and never for silence.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "kmsg"
        self.last_seq = 0
        self.ring: list[bytes] = []
        self.appear()

    def appear(self) -> None:
        self._descriptor, self._slave = os.openpty()
        tty.setraw(self._slave)
        self.path.symlink_to(os.ttyname(self._slave))
        for record in self.ring:
            os.write(self._descriptor, record)

    def vanish(self) -> None:
        """A reader gets an error or an end, and the path is gone."""
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


class Stories:
    """Lines that only one daemon understands, by ``table``.

    A token, new in each test, keeps its lines apart from those of other tests in the ring.
    """

    def __init__(self) -> None:
        self._token = uuid4().hex[:12]
        self.table = STORY_TABLE.format(token=self._token)

    def line(self, device: str, code: str) -> str:
        return f"story-{self._token} {device} {code}"


class FakeKernelLog(Stories, KernelLogDouble):
    """The double, with lines of the kernel itself that only one daemon understands."""

    trust: ClassVar[str] = "false"

    def __init__(self, folder: Path) -> None:
        Stories.__init__(self)
        KernelLogDouble.__init__(self, folder)

    def say(self, device: str, code: str, *, facility: int = 0) -> None:
        """A record with the next number."""
        self.append(self.line(device, code), facility=facility)

    def offer(self, seq: int, device: str, code: str, *, facility: int = 0) -> None:
        """A record with this number."""
        self.write(seq, self.line(device, code), facility=facility)


class RealKernelLog(Stories):
    """``/dev/kmsg``; its user holds the lock of it. The lines are those of user space, to be trusted."""

    path: ClassVar[Path] = KMSG
    trust: ClassVar[str] = "true"

    def __init__(self) -> None:
        super().__init__()
        self._descriptor = os.open(KMSG, os.O_WRONLY | os.O_CLOEXEC)

    def say(self, device: str, code: str) -> None:
        self.append(self.line(device, code))

    def append(self, message: str, count: int = 1) -> None:
        # In one write and with its newline, or readers see the record only when the next one comes.
        data = f"<5>{message}\n".encode()
        for _ in range(count):
            os.write(self._descriptor, data)

    def numbers(self) -> tuple[int, int]:
        """The kernel's numbers of the oldest and the newest record that the ring holds."""
        with reading() as reader:
            found = [int(head.split(",")[1]) for head, _ in records(reader)]
        return found[0], found[-1]

    def close(self) -> None:
        os.close(self._descriptor)


@contextmanager
def reading() -> Iterator[int]:
    """A descriptor that reads ``/dev/kmsg`` from its oldest record on, without waiting for new ones."""
    reader = os.open(KMSG, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        yield reader
    finally:
        os.close(reader)


def records(reader: int) -> Iterator[tuple[str, str]]:
    """Head and message of each record that the reader has not read yet and that was not overwritten."""
    while True:
        try:
            head, _, message = os.read(reader, 16384).decode(errors="replace").partition(";")
        except BrokenPipeError:  # some were overwritten: the next read goes on behind them
            continue
        except BlockingIOError:
            return
        yield head, message


def of_the_kernel(reader: int) -> list[str]:
    """The messages of the kernel itself that the reader has not read yet."""
    return [message for head, message in records(reader) if int(head.split(",")[0]) >> 3 == 0]
