"""The kernel log for one benchmark at a time, without the kernel's limit on writers."""

import contextlib
import fcntl
import os
import select
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from nodeagent.drivers.kmsg.parse import Record
from nodeagent.drivers.kmsg.reader import KernelLog
from tests.bench.shared.figures import CannotRun
from tests.harness.kernel_log import KMSG, KMSG_LOCK, KMSG_RATE

NOTICE = 5
"""Not shown on the console. The kernel wakes its readers after that, and a console's speed is not ours."""


class NeedsRoot(CannotRun):
    """This benchmark does what only root may, such as to write to the kernel log."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}, which needs root: sudo ./dev bench")


@contextlib.contextmanager
def exclusive() -> Iterator["Writer"]:
    """Raises ``NeedsRoot``."""
    if os.geteuid() != 0:
        raise NeedsRoot("it reads and writes the kernel log")
    with KMSG_LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        rate = KMSG_RATE.read_text()
        KMSG_RATE.write_text("on\n")
        writer = Writer()
        try:
            yield writer
        finally:
            writer.close()
            KMSG_RATE.write_text(rate)


class Writer:
    """Writes lines as a privileged program does: facility user."""

    def __init__(self) -> None:
        self._descriptor = os.open(KMSG, os.O_WRONLY | os.O_CLOEXEC)

    def write(self, text: str) -> None:
        # With its newline, or readers see the record only when the next one comes.
        os.write(self._descriptor, f"<{NOTICE}>{text}\n".encode())

    def close(self) -> None:
        os.close(self._descriptor)


def xid_line(device: str, xid: int) -> str:
    """As NVIDIA's driver writes it; ``device`` as the daemon will name it."""
    return f"NVRM: Xid (PCI:{device.removesuffix('.0')}): {xid}, pid=4711, name=bench, written by a benchmark"


def device_names(count: int) -> list[str]:
    """Addresses of devices that no machine has, in a domain of this run."""
    domain = 0x4000 + os.getpid() % 0x4000
    return [f"{domain:04x}:{bus:02x}:00.0" for bus in range(count)]


def records() -> list[Record]:
    """What the ring holds now, oldest first."""
    log = KernelLog(str(KMSG))
    log.open()
    try:
        found: list[Record] = []
        while True:
            chunk = log.read()
            found += chunk.records
            if chunk.drained:
                return found
    finally:
        log.close()


class BareReader:
    """The floor: a thread that only waits for records. ``woken_ns`` has CLOCK_MONOTONIC by line."""

    def __init__(self) -> None:
        self.woken_ns: dict[str, int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read, name="bare-reader")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _read(self) -> None:
        descriptor = os.open(KMSG, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        os.lseek(descriptor, 0, os.SEEK_END)
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        while not self._ended.is_set():
            if not poller.poll(100):
                continue
            woken_ns = time.monotonic_ns()
            with contextlib.suppress(BlockingIOError):
                while True:
                    message = os.read(descriptor, 9000).partition(b";")[2]
                    self.woken_ns[message.partition(b"\n")[0].decode()] = woken_ns
        os.close(descriptor)
