"""A real daemon that reads a kernel log of its own: a FIFO that stands for /dev/kmsg."""

import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tests.computed_once import with_shipped_tables
from tests.sources import only_named
from tests.waiting import WAIT_LIMIT_S, Lines, wait_until

ROOT = Path(__file__).parents[2]
TABLES = ROOT / "fault_codes"
"""The shipped tables that name one another's codes."""


def xid_line(xid: int) -> str:
    """As NVIDIA's driver writes one to the kernel log."""
    return f"NVRM: Xid (PCI:0000:3b:00): {xid}, pid=1234, name=python, and so on."


@contextmanager
def running(*arguments: str | Path) -> Iterator[Lines]:
    """The lines that a command prints while it runs; it is ended as a user would end it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "nodeagent.cli", *map(str, arguments)],
        env=with_shipped_tables(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield Lines(process.stdout)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)


def wait_for(path: Path, limit_s: float = WAIT_LIMIT_S) -> None:
    """Until it is there: for a file that nobody announces."""
    wait_until(path.exists, f"{path}", limit_s)


def daemon_of(listening: Path) -> int:
    """The pid of who listens at a socket."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.connect(str(listening))
        pid, _, _ = struct.unpack("3i", probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(pid)


@dataclass
class Node:
    """A daemon on a FIFO in place of the kernel log."""

    configuration: Path
    socket: Path
    log: Path
    written: int = field(default=0)

    @classmethod
    def within(cls, folder: Path, sections: str = "") -> Self:
        """Everything that it needs lies in the folder. ``sections`` are further ones of the configuration."""
        os.mkfifo(folder / "kmsg")
        (folder / "nodeagent.toml").write_text(
            only_named(
                f"""
[agent]
state_dir = "{folder}/state"
socket = "{folder}/n.sock"
control_socket = "{folder}/c.sock"
tables = ["{TABLES}"]

[metrics]
listen = ""

[drivers.kmsg]
path = "{folder}/kmsg"

{sections}
"""
            )
        )
        return cls(folder / "nodeagent.toml", folder / "n.sock", folder / "kmsg")

    @property
    def site(self) -> Path:
        """Where the site's tables lie, once they are laid over."""
        return self.configuration.parent / "site"

    def lay_over(self, site: str, shipped: Sequence[str] = ()) -> None:
        """A table of the site over these of the shipped ones: to judge all anew is most of a start."""
        base = self.configuration.parent / "base"
        for folder in (base, self.site):
            folder.mkdir()
        for name in ("agent", *shipped):
            shutil.copyfile(TABLES / f"{name}.toml", base / f"{name}.toml")
        (self.site / "site.toml").write_text(site)
        text = self.configuration.read_text()
        self.configuration.write_text(text.replace(f'["{TABLES}"]', f'["{base}", "{self.site}"]'))

    def write(self, message: str) -> None:
        """As the kernel itself."""
        self.written += 1
        with self.log.open("w") as log:
            log.write(f"3,{self.written},{self.written},-;{message}\n")

    @contextmanager
    def daemon(self) -> Iterator[Lines]:
        with running("run", "--config", self.configuration, "--stream") as stream:
            stream.until("started")
            yield stream
