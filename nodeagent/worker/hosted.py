"""Becomes a worker outside the daemon's sandbox, for each connection to its socket: the program of a unit.

    nodeagent-ascend.socket ──> this process, as root
        receives  the name of a driver, and the three pipes of a worker   (SCM_RIGHTS in unix(7))
        becomes   user nodeagent-ascend, in the group that owns the vendor's devices
        sends     its pid, and a pidfd of itself                          (pidfd_open(2))
        executes  nodeagent.worker

The daemon may not signal a process of another user. So the connection stays open: the kernel sends SIGKILL
(F_SETSIG in fcntl(2)) when the daemon closes it, writes to it, or has ended. This also ends a worker that
hangs in a library or holds the interpreter.

As root this process loads no library of a vendor and reads only the connection. The daemon has few rights, so
it cannot choose a program, a path, a user or a group here.
"""

import fcntl
import os
import pwd
import select
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from nodeagent.vendors import DRIVERS

SOCKET: Final = Path("/run/nodeagent-ascend/socket")
USER: Final = "nodeagent-ascend"
DEVICES: Final = (Path("/dev/davinci_manager"), Path("/dev/lqdcmi_pcidev"))
"""The device files of NPUs and of UnifiedBus switches. The driver's start script gives them to its group,
HwHiAiUser unless the installation named another, with mode 0660 (hicann/driver, scripts/package:
host_sys_init.sh).
"""

ORDER_LIMIT_S: Final = 10.0
MAX_NAME_BYTES: Final = 64
PIPES: Final = 3
EXIT_INVALID_ORDER: Final = 65


class InvalidOrder(Exception):
    """The message on the connection is no valid order for a worker; the text has the reason."""


def main() -> None:
    """With the connection as standard input. Does not return."""
    connection = socket.socket(fileno=os.dup(0))
    try:
        name, pipes = take_order(connection)
    except InvalidOrder as error:
        print(f"no worker is started: {error}", file=sys.stderr, flush=True)
        sys.exit(EXIT_INVALID_ORDER)
    become(USER, groups_of(DEVICES))
    die_with(connection)
    itself = os.pidfd_open(os.getpid())
    socket.send_fds(connection, [str(os.getpid()).encode()], [itself])
    os.close(itself)
    os.set_inheritable(connection.detach(), True)
    for place, pipe in enumerate(pipes):
        os.dup2(pipe, place)
    os.execv(sys.executable, (sys.executable, "-I", "-m", "nodeagent.worker", name))


def take_order(connection: socket.socket) -> tuple[str, Sequence[int]]:
    """The driver's name and the worker's ends of its pipes. Raises ``InvalidOrder``."""
    connection.settimeout(ORDER_LIMIT_S)
    try:
        message, descriptors, _, _ = socket.recv_fds(connection, MAX_NAME_BYTES, PIPES)
    except OSError as error:
        raise InvalidOrder(f"the daemon did not name a driver: {error}") from error
    connection.settimeout(None)
    name = message.decode(errors="replace")
    known = [driver for driver, traits in DRIVERS.items() if traits.has_unit]
    if name not in known or len(descriptors) != PIPES:
        right = f"one of {', '.join(known)}, with {PIPES} pipes, is right"
        raise InvalidOrder(f"{name!r} with {len(descriptors)} pipes; {right}")
    return name, descriptors


def groups_of(devices: Sequence[Path]) -> list[int]:
    """The groups that own these, but for root's: such a device has not been given to a group yet."""
    return sorted({device.stat().st_gid for device in devices if device.exists()} - {0})


def become(user: str, groups: Sequence[int]) -> None:
    """That user for good, without any capability, in these groups besides its own."""
    known = pwd.getpwnam(user)
    os.setgroups(groups)
    os.setresgid(known.pw_gid, known.pw_gid, known.pw_gid)
    os.setresuid(known.pw_uid, known.pw_uid, known.pw_uid)


def die_with(connection: socket.socket) -> None:
    """Die of SIGKILL once anything happens there from now on; at once if something has."""
    fcntl.fcntl(connection, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(connection, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(connection, fcntl.F_SETFL, fcntl.fcntl(connection, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([connection], [], [], 0)[0]:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
