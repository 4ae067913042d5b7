"""The process of a worker: three pipes, a file descriptor that signals its end, and a way to end it.

A process is either a child of the daemon (``SpawnedProcess``), or it runs in a systemd unit of its own,
outside the sandbox of the daemon (``HostedProcess``). Each connection to the unit's socket is one worker
(``Accept=`` in systemd.socket(5)); ``worker.hosted`` is the other side. A hosted process belongs to another
user, so the daemon cannot send it a signal: closing the connection kills it, and so does the end of the
daemon. Only the journal of the unit shows how it ended.

Nothing here waits for a process, reads from it, or knows its messages.
"""

import asyncio
import os
import signal
import socket
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Final, Protocol, cast


class WorkerProcess(Protocol):
    """Started; its pipes are not in use yet."""

    @property
    def pid(self) -> int: ...

    @property
    def pidfd(self) -> int:
        """Readable once it has ended."""

    @property
    def pipes(self) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
        """Our ends of its stdin, stdout, stderr."""

    def signal(self, number: signal.Signals) -> bool:
        """False: this one cannot be sent."""

    def how_it_ended(self) -> str:
        """How it ended, for people to read: "killed by SIGSEGV", "exit status 3"."""

    def discard(self) -> None:
        """Kill it before it got its first request: it has nothing open."""

    def release(self) -> None:
        """Close everything but the pipes. A process that still runs is left behind on purpose."""


class SpawnedProcess:
    """A child of the daemon. Raises ``OSError`` if it cannot be started."""

    def __init__(self, command: Sequence[str]) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, close_fds=True, start_new_session=True
        )
        self.pidfd = os.pidfd_open(self._process.pid)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def pipes(self) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
        process = self._process
        return (
            cast(IO[bytes], process.stdin),
            cast(IO[bytes], process.stdout),
            cast(IO[bytes], process.stderr),
        )

    def signal(self, number: signal.Signals) -> bool:
        """Signal it by its pidfd: the number of a child that has ended may already be another's."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, number)
        return True

    def how_it_ended(self) -> str:
        return _ending(self._process.wait())

    def discard(self) -> None:
        self._process.kill()
        self._process.wait()

    def release(self) -> None:
        os.close(self.pidfd)
        if self._process.poll() is None:
            # Popen warns about a child that was never waited for; this one never will be.
            self._process.returncode = -signal.SIGKILL


def _ending(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


START_LIMIT_S: Final = 10.0
MAX_ANSWER_BYTES: Final = 32

_JOURNAL: Final = "journalctl --unit 'nodeagent-ascend@*'"


class HostedProcess:
    """A ``WorkerProcess`` whose connection ends it."""

    def __init__(
        self,
        pid: int,
        pidfd: int,
        connection: socket.socket,
        pipes: tuple[IO[bytes], IO[bytes], IO[bytes]],
    ) -> None:
        self.pid = pid
        self.pidfd = pidfd
        self.pipes = pipes
        self._connection = connection

    def signal(self, number: signal.Signals) -> bool:
        """Only SIGKILL, by closing the connection."""
        if number is signal.SIGKILL:
            self._connection.close()
        return number is signal.SIGKILL

    def how_it_ended(self) -> str:
        return f"{_JOURNAL} _PID={self.pid} shows how"

    def discard(self) -> None:
        self._connection.close()

    def release(self) -> None:
        """The kernel ends a process that still runs as soon as it can."""
        self._connection.close()
        os.close(self.pidfd)


async def start_hosted(path: Path, source: str) -> HostedProcess:
    """Start a worker in its unit. Raises ``OSError`` where nothing listens, or no worker starts in time."""
    with ExitStack() as opened:
        connection = opened.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        theirs, ours = _pipes()
        for end in ours:
            opened.callback(end.close)
        try:
            async with asyncio.timeout(START_LIMIT_S):
                pid, pidfd = await _ask(connection, path, source, theirs)
        except OSError as error:
            why = error.strerror or f"no worker started within {START_LIMIT_S:g} s"
            todo = f"is nodeagent-ascend.socket active? drivers.{source}.enabled = false does without"
            raise OSError(f"{path}: {why}; {todo}") from error
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        opened.pop_all()
    return HostedProcess(pid, pidfd, connection, ours)


async def _ask(connection: socket.socket, path: Path, source: str, pipes: Sequence[int]) -> tuple[int, int]:
    """The process's number, and a descriptor of it."""
    loop = asyncio.get_running_loop()
    connection.setblocking(False)
    await loop.sock_connect(connection, str(path))
    socket.send_fds(connection, [source.encode()], pipes)
    await _readable(connection)
    said, descriptors, _, _ = socket.recv_fds(connection, MAX_ANSWER_BYTES, 1)
    if not descriptors:
        raise ConnectionResetError(0, f"the unit ended before it was a worker ({_JOURNAL} shows why)")
    return int(said), descriptors[0]


async def _readable(connection: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    came = asyncio.Event()
    loop.add_reader(connection, came.set)
    try:
        await came.wait()
    finally:
        loop.remove_reader(connection)


def _pipes() -> tuple[list[int], tuple[IO[bytes], IO[bytes], IO[bytes]]]:
    """The worker's ends of stdin, stdout and stderr, and ours."""
    orders, reports, errors = os.pipe(), os.pipe(), os.pipe()
    ours = (
        os.fdopen(orders[1], "wb", 0),
        os.fdopen(reports[0], "rb", 0),
        os.fdopen(errors[0], "rb", 0),
    )
    return [orders[0], reports[1], errors[1]], ours
