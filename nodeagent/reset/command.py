"""A command with an end: its time is bounded, and its children end with it. For hooks and vendors' tools."""

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO, Final

MAX_SHOWN: Final = 300


class CommandFailed(Exception):
    """It could not be run, ended with another status than 0, or did not end; str() says which."""


def run(
    command: Sequence[str],
    limit_s: float,
    env: Mapping[str, str] | None = None,
    output: IO[bytes] | None = None,
) -> None:
    """Run it to its end, or to its time's: then it and its children are killed. Raises ``CommandFailed``.

    What it prints goes to ``output``; else the end of it is shown where it fails.
    """
    with contextlib.ExitStack() as stack:
        printed = output or stack.enter_context(tempfile.TemporaryFile())
        try:
            process = subprocess.Popen(
                list(command),
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise CommandFailed(f"{command[0]}: {error.strerror}") from error
        try:
            status = process.wait(limit_s)
        except subprocess.TimeoutExpired as error:
            os.killpg(process.pid, signal.SIGKILL)
            raise CommandFailed(f"{command[0]}: killed after {limit_s:g} s") from error
        if status != 0:
            raise CommandFailed(f"{command[0]}: exit status {status}{_end_of(printed)}")


def _end_of(printed: IO[bytes]) -> str:
    if not printed.readable():
        return ""
    printed.seek(max(0, printed.seek(0, os.SEEK_END) - MAX_SHOWN))
    shown = " ".join(printed.read().decode(errors="replace").split())
    return f": {shown}" if shown else ""
