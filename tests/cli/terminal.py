"""A command on a terminal of 80 columns."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def on_terminal(*arguments: str | Path, **environment: str) -> str:
    """What a command writes to a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with os.fdopen(ours, "rb") as screen:
        process = subprocess.Popen(
            [sys.executable, "-m", "nodeagent.cli", *map(str, arguments)],
            stdout=theirs,
            env={**os.environ, "TERM": "xterm", **environment},
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
