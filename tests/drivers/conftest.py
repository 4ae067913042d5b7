"""What the drivers' tests share: the kernel log, the real one and its double."""

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nodeagent.core.catalog import Pattern
from tests.drivers.kernel_log_double import KernelLogDouble, VanishingKernelLog


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

    def __init__(self, marker: str, write: Callable[[str], None]) -> None:
        self.marker = marker
        self._write = write
        self.pattern = Pattern(
            id="MARKED", code="{code}", regex=rf"{marker} (?P<code>\w+)", device="node", file="test:1"
        )

    def write(self, code: str, rest: str = "") -> None:
        self._write(f"{self.marker} {code} {rest}".rstrip())


@pytest.fixture
def kmsg(marker: str, write_kernel_line: Callable[[str], None]) -> KernelLogWriter:
    """The real kernel log, to this test alone."""
    return KernelLogWriter(marker, write_kernel_line)
