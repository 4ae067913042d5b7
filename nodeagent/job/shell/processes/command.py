"""Starts the command of a run: its session, its limits, its environment. It waits for nothing.

The command has the supervisor's standard streams and every descriptor that the supervisor was given (a
launcher's, of MPI or make); the supervisor's own are closed at its exec.
"""

import errno
import os
import resource
import subprocess
from collections.abc import Mapping, Sequence

from nodeagent.job.inputs import Process
from nodeagent.job.shell.processes import procfs


def forbid_cores() -> None:
    """Cores of ranks that are ended one by one would fill the disk. The command may raise the limit again."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))


def start(command: Sequence[str], environment: Mapping[str, str], *, foreground: bool) -> Process:
    """Raises ``OSError`` where it cannot be run. With ``foreground`` it stays in the terminal's session."""
    try:
        return _spawn(command, environment, foreground)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
    # A script without an interpreter's line: as execvp(3) and every shell do.
    return _spawn(("/bin/sh", *command), environment, foreground)


def _spawn(command: Sequence[str], environment: Mapping[str, str], foreground: bool) -> Process:
    begun = subprocess.Popen(
        command, env={**os.environ, **environment}, close_fds=False, start_new_session=not foreground
    )
    begun.returncode = 0  # it is reaped with all others of its tree, not by this object
    found = procfs.stat(begun.pid)
    # Another user's by now (a setuid program) may not be shown, and without /proc nobody is.
    return Process(pid=begun.pid, start_time=0) if found is None else found.process
