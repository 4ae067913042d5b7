"""What every test may ask for: the kernel log for itself, and to be skipped where it lacks root.

What is tried at random is the same in each run, and no example is too slow for a slow machine.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "nodeagent", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("nodeagent")

KMSG = Path("/dev/kmsg")
KMSG_RATE = Path("/proc/sys/kernel/printk_devkmsg")
KMSG_LOCK = Path("/run/lock/nodeagent-tests-kmsg")

WriteKernelLine = Callable[[str], None]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.geteuid() == 0:
        return
    for item in items:
        if item.get_closest_marker("root"):
            item.add_marker(pytest.mark.skip(reason="needs root"))


@pytest.fixture
def kmsg_lock() -> Iterator[None]:
    """The kernel log is one for the whole machine: one test at a time uses it, with no rate limit."""
    with KMSG_LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        rate = KMSG_RATE.read_text()
        KMSG_RATE.write_text("on\n")
        yield
        KMSG_RATE.write_text(rate)


@pytest.fixture
def write_kernel_line(kmsg_lock: None) -> WriteKernelLine:
    """Writes one line to the kernel log, as a privileged program can: facility user, priority error."""

    def write(text: str) -> None:
        # In one write and with its newline, or readers see the record only when the next one comes.
        with KMSG.open("wb", buffering=0) as kmsg:
            kmsg.write(f"<3>{text}\n".encode())

    return write
