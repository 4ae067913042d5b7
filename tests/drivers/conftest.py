"""What the drivers' tests share: the kernel log, the real one and its double."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeagent.core.catalog.catalog import Pattern
from tests.harness.kernel_log import KernelLogDouble, VanishingKernelLog


@pytest.fixture
def kernel_log(tmp_path: Path) -> Iterator[KernelLogDouble]:
    double = KernelLogDouble(tmp_path)
    yield double
    double.close()


@pytest.fixture
def vanishing_log(tmp_path: Path) -> Iterator[VanishingKernelLog]:
    double = VanishingKernelLog(tmp_path)
    yield double
    double.close()


@pytest.fixture
def marker() -> str:
    """Others write to the kernel log too: every test knows its own lines by this."""
    return f"nodeagent-test-{uuid.uuid4().hex[:12]}"


class KernelLogWriter:
    """Writes marked lines to the real kernel log; only the kernel itself could write them as facility 0."""

    def __init__(self, marker: str, descriptor: int) -> None:
        self.marker = marker
        self._descriptor = descriptor
        self.pattern = Pattern(
            id="MARKED", code="{code}", regex=rf"{marker} (?P<code>\w+)", device="node", file="test:1"
        )

    def write(self, code: str, rest: str = "", times: int = 1) -> None:
        """As information: an error would go to a slow console too, and a flood of it takes minutes."""
        line = f"<6>{self.marker} {code} {rest}".rstrip().encode() + b"\n"
        for _ in range(times):
            os.write(self._descriptor, line)


@pytest.fixture
def kmsg(marker: str, kmsg_lock: None) -> Iterator[KernelLogWriter]:
    """The real kernel log, to this test alone."""
    descriptor = os.open("/dev/kmsg", os.O_WRONLY)
    yield KernelLogWriter(marker, descriptor)
    os.close(descriptor)
