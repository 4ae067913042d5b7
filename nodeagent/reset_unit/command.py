"""A command with an end: its time is bounded, and its children end with it. For hooks and vendors' tools."""

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

MAX_SHOWN: Final = 300
KILL_WAIT_S: Final = 5.0
"""What is killed is gone at once, with what it had open, unless it hangs in the kernel."""


class CommandFailed(Exception):
    """It could not be run, ended with another status than 0, or did not end; str() says which."""


def run(
    command: Sequence[str],
    limit_s: float,
    env: Mapping[str, str] | None = None,
    output: IO[bytes] | None = None,
    cwd: Path | None = None,
) -> None:
    """Run it to its end, or to its time's: then it and its children are killed. Raises ``CommandFailed``.

    What it prints goes to ``output``; else the end of it is shown where it fails.
    """
    try:
        with contextlib.ExitStack() as stack:
            _run(command, limit_s, env, output or stack.enter_context(tempfile.TemporaryFile()), cwd)
    except OSError as error:
        raise CommandFailed(f"{command[0]}: {error.strerror or error}") from error


def _run(
    command: Sequence[str],
    limit_s: float,
    env: Mapping[str, str] | None,
    printed: IO[bytes],
    cwd: Path | None,
) -> None:
    """Raises ``OSError`` as well."""
    process = subprocess.Popen(
        list(command),
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=printed,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        status = process.wait(limit_s)
    except subprocess.TimeoutExpired as error:
        os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(KILL_WAIT_S)
        raise CommandFailed(f"{command[0]}: killed after {limit_s:g} s") from error
    if status != 0:
        raise CommandFailed(f"{command[0]}: exit status {status}{_end_of(printed)}")


def _end_of(printed: IO[bytes]) -> str:
    if not printed.readable():
        return ""
    printed.seek(max(0, printed.seek(0, os.SEEK_END) - MAX_SHOWN))
    shown = " ".join(printed.read().decode(errors="replace").split())
    return f": {shown}" if shown else ""
