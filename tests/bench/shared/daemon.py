"""The real daemon as a child process: started as a package starts it, watched from outside.

Nothing here imports gRPC before it is asked to: what this process maps would count in the daemon's favour.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

START_LIMIT_S = 60.0
STOP_LIMIT_S = 30.0
LOOK_EVERY_S = 0.2
ROOT = Path(__file__).resolve().parents[3]
PROGRAM = (str(Path(sys.executable).with_name("nodeagent")),)
"""That of the checkout, on this system's interpreter."""

_CONFIG = """
[agent]
state_dir = "{directory}/state"
socket = "{directory}/public.sock"
control_socket = "{directory}/control.sock"
tables = ["{root}/fault_codes"]

[metrics]
listen = ""

[drivers.kmsg]
enabled = {kmsg}
trust_userspace = true
"""


_CACHE = tempfile.TemporaryDirectory(prefix="nodeagent-bench-cache-")
"""As the unit gives one: what the first start compiles is there for those that are measured."""


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder on a disk: where /tmp is memory, a commit would cost nothing."""
    with tempfile.TemporaryDirectory(prefix="nodeagent-bench-", dir="/var/tmp") as directory:
        yield Path(directory)


class NotReady(Exception):
    """The daemon ended or took too long; with what it logged."""


class Daemon:
    """One life of the daemon, in ``directory``. ``started_ns`` is CLOCK_MONOTONIC just before exec."""

    def __init__(
        self, directory: Path, *, kmsg: bool = True, drivers: str = "", program: tuple[str, ...] = PROGRAM
    ) -> None:
        self.socket = directory / "public.sock"
        config = directory / "nodeagent.toml"
        config.write_text(_CONFIG.format(directory=directory, root=ROOT, kmsg=str(kmsg).lower()) + drivers)
        self._notified = _Notified(directory / "notify.sock")
        self._log_path = directory / "log"
        with self._log_path.open("ab") as log:
            self.started_ns = time.monotonic_ns()
            self._process = subprocess.Popen(
                [*program, "run", "--no-stream", "--config", config],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={
                    **os.environ,
                    "NOTIFY_SOCKET": str(directory / "notify.sock"),
                    "CACHE_DIRECTORY": _CACHE.name,
                },
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def ready(self) -> float:
        """Wait for READY=1; seconds from exec to it. Raises ``NotReady``."""
        deadline_s = time.monotonic() + START_LIMIT_S
        while (ready_ns := self._notified.ready_ns(LOOK_EVERY_S)) is None:
            if self._process.poll() is not None or time.monotonic() > deadline_s:
                ended = f"(exit status {self._process.returncode})"
                raise NotReady(f"the daemon did not get ready {ended}:\n{self._log_path.read_text()}")
        return (ready_ns - self.started_ns) / 1e9

    def serving(self) -> float:
        """Wait for gRPC health to say SERVING; seconds from exec to it. Raises ``NotReady``."""
        self.ready()
        from tests.bench.shared import health

        health.wait_for_serving(self.socket, START_LIMIT_S)
        return (time.monotonic_ns() - self.started_ns) / 1e9

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise
        finally:
            self._notified.close()


@contextlib.contextmanager
def running(
    directory: Path, *, kmsg: bool = True, drivers: str = "", program: tuple[str, ...] = PROGRAM
) -> Iterator[Daemon]:
    """``drivers``: sections of the configuration for others than the kernel log."""
    daemon = Daemon(directory, kmsg=kmsg, drivers=drivers, program=program)
    try:
        yield daemon
    finally:
        daemon.stop()


class _Notified:
    """Stands in for the service manager, and reads everything: a full socket holds up the daemon."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        path.unlink(missing_ok=True)
        self._socket.bind(str(path))
        self._ready = threading.Event()
        self._ready_ns = 0
        self._thread = threading.Thread(target=self._receive, name="notified")
        self._thread.start()

    def ready_ns(self, limit_s: float) -> int | None:
        """When READY=1 came, CLOCK_MONOTONIC; None if it has not by then."""
        return self._ready_ns if self._ready.wait(limit_s) else None

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RD)
        self._thread.join()
        self._socket.close()

    def _receive(self) -> None:
        while said := self._socket.recv(4096):
            if b"READY=1" in said and not self._ready.is_set():
                self._ready_ns = time.monotonic_ns()
                self._ready.set()
