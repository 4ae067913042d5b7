"""A worker's process as the daemon has it: three pipes, a descriptor that signals its end, a way to end it.

Nothing here waits for it, reads from it, or knows what is said.
"""

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Protocol, cast


class Process(Protocol):
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
        """How it ended, in words for people: "killed by SIGSEGV", "exit status 3"."""

    def discard(self) -> None:
        """Nobody wants it any more, before it got an order: it holds nothing, so it may be killed."""

    def release(self) -> None:
        """Let go of all but the pipes. One that still runs is left behind, knowingly."""


class Spawned:
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
            # Popen would complain of a child never waited for; nobody will wait for this one.
            self._process.returncode = -signal.SIGKILL


def _ending(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
