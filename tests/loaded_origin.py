"""``python -m tests.loaded_origin``: has loaded all commands, and becomes one by each fork asked of it.

Orders come over the socket that is standard input, with the three standard files of the fork. A fork is a
child of the process that asks, which waits for it as for any other (``CLONE_PARENT`` in clone(2)).
"""

import ctypes
import gc
import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from nodeagent.cli.entry import main
from nodeagent.cli.main import MODULES
from tests.loaded_once import MAX_ORDER_BYTES

BESIDE = ("nodeagent.daemon.app",)
"""Imported by a command when it is called."""

CLONE3 = 435
"""The number of the call, the same on every architecture (include/uapi/asm-generic/unistd.h)."""
CLONE_PARENT = 0x00008000
ARGUMENTS_BYTES = 64

_python = ctypes.PyDLL(None, use_errno=True)  # holds the interpreter meanwhile, as a fork has to


def await_order() -> dict[str, Any]:
    """Returns in the fork, with what was asked; the process itself ends once nobody can ask any more."""
    connection = socket.socket(fileno=os.dup(0))
    while True:
        said, files, _, _ = socket.recv_fds(connection, MAX_ORDER_BYTES, 3)
        if not said:
            sys.exit()
        if (pid := fork()) == 0:
            connection.close()
            take_over(files)
            order: dict[str, Any] = json.loads(said)
            return order
        for file in files:
            os.close(file)
        connection.send(str(pid).encode())


def take_over(files: Sequence[int]) -> None:
    """As standard input, output and error, opened as Python opens them at its start."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", errors="backslashreplace", buffering=1, closefd=False)


def fork() -> int:
    arguments = (ctypes.c_uint64 * (ARGUMENTS_BYTES // 8))(CLONE_PARENT)
    _python.PyOS_BeforeFork()
    pid = _python.syscall(CLONE3, arguments, ARGUMENTS_BYTES)
    if pid == 0:
        _python.PyOS_AfterFork_Child()
        return 0
    _python.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(ctypes.get_errno(), "clone3")
    return int(pid)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for module in (*MODULES.values(), *BESIDE):
        import_module(module)
    gc.freeze()
    asked = await_order()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(asked["directory"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.argv[1:] = asked["arguments"]
    main()
