"""What ``subprocess`` is asked to start, and a fork that becomes it.

An order goes over a socket, with the three standard files of what is to start. A fork is a child of the
process that asks, which waits for it as for any other (``CLONE_PARENT`` in clone(2)).
"""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

MAX_ORDER_BYTES: Final = 1 << 18
OF_ITSELF: Final = (-1, None, None, None, -1, None)
"""No process group, user, groups or umask of its own, and nothing to be called in it."""

WORKER: Final = [sys.executable, "-m", "nodeagent.worker"]

CLONE: Final = {"x86_64": 56, "aarch64": 220}
"""The number of the call, by architecture (arch/x86/entry/syscalls/syscall_64.tbl,
include/uapi/asm-generic/unistd.h in Linux 6.1)."""
CLONE_PARENT: Final = 0x00008000

ROOM: Final = "-" * 2048
"""An argument of the process to fork from: a fork writes there what /proc shows (proc_pid_cmdline(5))."""
ARG_START: Final = 48
ARG_END: Final = 49
"""Fields of /proc/PID/stat, counted from 1 (proc_pid_stat(5))."""

ForkExec = Callable[..., int]

_python = ctypes.PyDLL(None, use_errno=True)  # holds the interpreter meanwhile, as a fork has to


def real_fork_exec() -> ForkExec:
    """``subprocess``'s own call that forks and executes; asyncio's processes come through it too."""
    own: ForkExec = vars(subprocess)["_fork_exec"]
    return own


@dataclass(frozen=True, slots=True)
class Start:
    """``words`` are the whole command, ``own_session`` as of setsid(2)."""

    words: Sequence[str]
    environment: Mapping[str, str]
    directory: str
    own_session: bool

    @classmethod
    def of(cls, given: Sequence[Any]) -> tuple["Start", Sequence[int]] | None:
        """With its standard files, from the arguments of ``Popen._execute_child`` in CPython's subprocess.py.
        None where more is asked than a fork here can do.
        """
        arguments, _, _, kept_open, directory, environment, *rest = given
        if len(kept_open) > 1 or tuple(rest[10:16]) != OF_ITSELF:  # the pipe for errors of the start is one
            return None
        stdin, _, _, stdout, _, stderr = rest[:6]
        start = cls(
            [os.fsdecode(word) for word in arguments],
            dict(os.environ if environment is None else _variables(environment)),
            os.fsdecode(directory or Path.cwd()),
            bool(rest[9]),
        )
        files = [number if own == -1 else own for number, own in enumerate((stdin, stdout, stderr))]
        return start, files

    @property
    def counting_at_start(self) -> dict[str, str]:
        """Those variables that count when a program is executed, and only then."""
        return counting_at_start(self.environment)

    def become(self) -> None:
        """In a fork."""
        if self.own_session:
            os.setsid()
        os.chdir(self.directory)
        os.environ.clear()
        os.environ.update(self.environment)
        sys.argv[1:] = self.words[3:]  # behind: python -m MODULE
        _show(self.words)


def counting_at_start(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if name.startswith(("LD_", "PYTHON"))}


class Loaded:
    """A process to fork from, at the other end of ``connection``."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._one_at_a_time = threading.Lock()

    def fork(self, start: Start, files: Iterable[int]) -> int:
        """The pid."""
        with self._one_at_a_time:
            socket.send_fds(self._connection, [json.dumps(asdict(start)).encode()], list(files))
            pid = self._connection.recv(32)
        assert pid, "the process to fork from has ended"
        return int(pid)

    def end(self) -> None:
        self._connection.close()


def await_start(connection: socket.socket) -> Start:
    """Returns in the fork; the process itself ends once nobody can ask any more."""
    while True:
        said, files, _, _ = socket.recv_fds(connection, MAX_ORDER_BYTES, 3)
        if not said:
            os._exit(0)
        if (pid := _fork()) == 0:
            connection.close()
            for number, file in enumerate(files):
                os.dup2(file, number)
                os.close(file)
            return Start(**json.loads(said))
        for file in files:
            os.close(file)
        connection.send(str(pid).encode())


def _fork() -> int:
    """As ``os.fork``, but for whose child it is."""
    nothing = ctypes.c_long(0)
    _python.PyOS_BeforeFork()
    pid = _python.syscall(
        ctypes.c_long(CLONE[os.uname().machine]),
        ctypes.c_long(CLONE_PARENT | signal.SIGCHLD),
        *[nothing] * 4,
    )
    if pid == 0:
        _python.PyOS_AfterFork_Child()
        return 0
    _python.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(ctypes.get_errno(), "clone")
    return int(pid)


def _show(words: Sequence[str]) -> None:
    """As much of the command as there is room for; zeros follow."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = (int(fields[field - 3]) for field in (ARG_START, ARG_END))
    room = end - begin
    text = b"\0".join(map(os.fsencode, words))[: room - 1]
    ctypes.memmove(begin, text.ljust(room, b"\0"), room)


def _variables(environment: Sequence[bytes]) -> dict[str, str]:
    pairs = (os.fsdecode(each).partition("=") for each in environment)
    return {name: value for name, _, value in pairs}
