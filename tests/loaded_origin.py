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
from importlib import import_module
from typing import Any

from nodeagent.cli.entry import main
from nodeagent.cli.main import MODULES
from tests.loaded_once import MAX_ORDER_BYTES

BESIDE = ("nodeagent.daemon.app",)
"""Imported by a command when it is called."""

CLONE = {"x86_64": 56, "aarch64": 220}
"""The number of the call, by architecture (arch/x86/entry/syscalls/syscall_64.tbl,
include/uapi/asm-generic/unistd.h in Linux 6.1)."""
CLONE_PARENT = 0x00008000

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
            for number, file in enumerate(files):
                os.dup2(file, number)
                os.close(file)
            order: dict[str, Any] = json.loads(said)
            return order
        for file in files:
            os.close(file)
        connection.send(str(pid).encode())


def fork() -> int:
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
