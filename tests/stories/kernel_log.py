"""What the stories write to the kernel log: lines that only their own daemon understands.

A token that is new in each test keeps apart what other tests and the machine itself left in the ring.
"""

import os
from pathlib import Path
from typing import ClassVar
from uuid import uuid4

from tests.conftest import KMSG
from tests.drivers.kernel_log_double import KernelLogDouble

TABLE = """
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


class Words:
    """The words of one test, as table and as lines."""

    def __init__(self) -> None:
        self._token = uuid4().hex[:12]
        self.table = TABLE.format(token=self._token)

    def line(self, device: str, code: str) -> str:
        return f"story-{self._token} {device} {code}"


class RealKernelLog(Words):
    """/dev/kmsg; whoever makes one holds its lock. Lines are those of user space, to be trusted."""

    path: ClassVar[Path] = KMSG
    trust: ClassVar[str] = "true"

    def __init__(self) -> None:
        super().__init__()
        self._descriptor = os.open(KMSG, os.O_WRONLY | os.O_CLOEXEC)

    def say(self, device: str, code: str) -> None:
        self.write(self.line(device, code))

    def write(self, text: str, count: int = 1) -> None:
        # In one write and with its newline, or readers see the record only when the next one comes.
        data = f"<5>{text}\n".encode()
        for _ in range(count):
            os.write(self._descriptor, data)

    def numbers(self) -> tuple[int, int]:
        """The kernel's numbers of the oldest and the newest record that the ring holds."""
        reader = os.open(KMSG, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        found: list[int] = []
        try:
            while True:
                try:
                    found.append(int(os.read(reader, 16384).split(b",", 2)[1]))
                except BrokenPipeError:
                    continue
                except BlockingIOError:
                    return found[0], found[-1]
        finally:
            os.close(reader)

    def close(self) -> None:
        os.close(self._descriptor)


class FakeKernelLog(Words):
    """A FIFO that stands for it: lines of the kernel itself, and a ring that a test offers as it likes."""

    trust: ClassVar[str] = "false"

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._double = KernelLogDouble(folder)
        self.path = self._double.path
        self.last_seq = 0

    def write(self, text: str, *, facility: int = 0) -> None:
        """A new record with these words."""
        self.last_seq += 1
        self._double.write(self.last_seq, text, facility=facility)

    def say(self, device: str, code: str, *, facility: int = 0) -> None:
        """A new record."""
        self.last_seq += 1
        self.offer(self.last_seq, device, code, facility=facility)

    def offer(self, seq: int, device: str, code: str, *, facility: int = 0) -> None:
        """A record with this number, maybe one that was there before, as a ring offers it to a new reader."""
        self._double.write(seq, self.line(device, code), facility=facility)

    def close(self) -> None:
        self._double.close()
