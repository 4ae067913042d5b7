"""A worker's process in a unit of its own, outside the sandbox of the daemon: how it is asked for, and ended.

Each connection to the unit's socket is a worker (``Accept=`` in systemd.socket(5)); ``worker.hosted`` is the
other side. The process is another user's, so no signal can be sent: to close the connection is SIGKILL for
it, and the end of the daemon closes it as well. It is no child: how it ended, only its unit's journal says.
"""

import asyncio
import os
import signal
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Final

START_LIMIT_S: Final = 10.0
MAX_ANSWER_BYTES: Final = 32

_JOURNAL: Final = "journalctl --unit 'nodeagent-ascend@*'"


class Hosted:
    """A ``Process``; the connection ends it."""

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
        """Only SIGKILL, by hanging up."""
        if number is signal.SIGKILL:
            self._connection.close()
        return number is signal.SIGKILL

    def how_it_ended(self) -> str:
        return f"{_JOURNAL} _PID={self.pid} shows how"

    def discard(self) -> None:
        self._connection.close()

    def release(self) -> None:
        """One that still runs is ended too, by the kernel, as soon as that can be."""
        self._connection.close()
        os.close(self.pidfd)


async def start(path: Path, source: str) -> Hosted:
    """Raises ``OSError``: nobody listens there, or no worker came of it in time."""
    with ExitStack() as opened:
        connection = opened.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        theirs, ours = _pipes()
        for end in ours:
            opened.callback(end.close)
        try:
            async with asyncio.timeout(START_LIMIT_S):
                pid, pidfd = await _ask(connection, path, source, theirs)
        except OSError as error:
            why = error.strerror or f"no worker came within {START_LIMIT_S:g} s"
            todo = f"is nodeagent-ascend.socket active? drivers.{source}.enabled = false does without"
            raise OSError(f"{path}: {why}; {todo}") from error
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        opened.pop_all()
    return Hosted(pid, pidfd, connection, ours)


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
