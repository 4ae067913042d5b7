"""The daemon for tests without an event loop: it reads a kernel log of its own, and prints its events."""

import signal
import socket
import struct
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from tests.computed_once import with_shipped_tables
from tests.harness.configuration import SHIPPED_TABLES, Files
from tests.harness.daemon import COMMAND
from tests.harness.kernel_log import KernelLogDouble
from tests.waiting import WAIT_LIMIT_S, Lines, wait_until


def xid_line(xid: int) -> str:
    """As NVIDIA's driver writes one to the kernel log."""
    return f"NVRM: Xid (PCI:0000:3b:00): {xid}, pid=1234, name=python, and so on."


@contextmanager
def running(*arguments: str | Path, environment: Mapping[str, str] | None = None) -> Iterator[Lines]:
    """The lines that a command prints while it runs. It is ended as a user would end it."""
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        env=environment or with_shipped_tables(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield Lines(process.stdout)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=WAIT_LIMIT_S)


def wait_for(path: Path, limit_s: float = WAIT_LIMIT_S) -> None:
    """Until the file is there."""
    wait_until(path.exists, f"{path}", limit_s)


def daemon_of(listening: Path) -> int:
    """The pid of the process that listens at a socket."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.connect(str(listening))
        pid, _, _ = struct.unpack("3i", probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(pid)


class Node(Files):
    """All shipped tables, unless ``lay_over`` takes some of them. ``sections`` are of the configuration,
    ``metrics`` the address at which Prometheus scrapes.
    """

    def __init__(self, folder: Path, sections: str = "", metrics: str = "") -> None:
        super().__init__(folder)
        self._sections = (sections,)
        self.metrics = metrics
        self._kernel_log = KernelLogDouble(folder)
        self.log = self._kernel_log.path
        self._tables: Sequence[Path] = (SHIPPED_TABLES,)
        self._configure()

    @classmethod
    def within(cls, folder: Path, sections: str = "", metrics: str = "") -> Self:
        return cls(folder, sections, metrics)

    def lay_over(self, site: str, shipped: Sequence[str] = ()) -> None:
        """A table of the site above these shipped ones."""
        self.take_of_shipped("agent", *shipped)
        self.site.mkdir()
        (self.site / "site.toml").write_text(site)
        self._tables = (self.base, self.site)
        self._configure()

    def write(self, message: str) -> None:
        """As the kernel itself."""
        self._kernel_log.append(message)

    @contextmanager
    def daemon(self) -> Iterator[Lines]:
        environment = self.environment(self._tables)
        with running("run", "--config", self.configuration, "--stream", environment=environment) as stream:
            stream.until("started")
            yield stream

    def _configure(self) -> None:
        self.write_configuration(self.log, self._tables, metrics=self.metrics, sections=self._sections)
