"""A command on a terminal of 80 columns and 24 lines: what it writes, or a person who types meanwhile."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import WAIT_LIMIT_S, wait_until

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    """Of a shell, which exports no size of its terminal; who runs the tests may."""
    own = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    return {**own, "TERM": "xterm", **given}


def on_terminal(*arguments: str | Path, **environment: str) -> str:
    """What a command writes to a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with os.fdopen(ours, "rb") as screen:
        process = subprocess.Popen(
            [sys.executable, "-m", "nodeagent.cli", *map(str, arguments)],
            stdout=theirs,
            env=_environment(environment),
        )
        os.close(theirs)
        written = b""
        try:
            while piece := screen.read1():
                written += piece
        except OSError:  # EIO: the other end is closed
            pass
        assert process.wait(timeout=30) == 0
    return written.decode().replace("\r\n", "\n")


_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]")


class Typist:
    """Types on the terminal of a command, and reads its screen."""

    def __init__(self, terminal: int, process: subprocess.Popen[bytes]) -> None:
        self._terminal = terminal
        self.process = process
        self.written = ""

    def type(self, keys: str) -> None:
        """What is on the screen so far is forgotten."""
        self.written = ""
        os.write(self._terminal, keys.encode())

    def resize(self, columns: int, lines: int) -> None:
        self.written = ""
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def until(self, text: str) -> str:
        """What was written since the last key, without its colours, once it has the text."""
        wait_until(lambda: text in self._read(), f"{text!r} on the screen")
        return self._read()

    def ended(self) -> int:
        """The exit status, with all that is written until then."""
        wait_until(lambda: (self._read(), self.process.poll())[1] is not None, "the end of the command")
        self._read()
        return self.process.wait()

    @property
    def modes(self) -> list[object]:
        return list(termios.tcgetattr(self._terminal))

    def _read(self) -> str:
        while select.select([self._terminal], [], [], 0)[0]:
            try:
                self.written += os.read(self._terminal, 65_536).decode(errors="replace")
            except OSError:  # EIO: the other end is closed
                break
        return _SEQUENCE.sub("", self.written)


@contextmanager
def typing(*arguments: str | Path, **environment: str) -> Iterator[Typist]:
    """The terminal is the command's own, so that Ctrl-C reaches it as a signal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "nodeagent.cli", *map(str, arguments)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 # no thread runs
        env=_environment(environment),
    )
    try:
        yield Typist(ours, process)
    finally:
        process.kill()
        process.wait(timeout=WAIT_LIMIT_S)
        os.close(theirs)
        os.close(ours)
