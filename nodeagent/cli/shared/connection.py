"""The way to the daemon: the client on a unix socket, whose errors end the command in plain words.

It asks nothing again and interprets no answer.
"""

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nodeagent.cli.shared.errors import EXIT_FAILED, EXIT_NOT_ALLOWED, EXIT_UNAVAILABLE, Failure

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # or its library writes to our standard error

from nodeagent.client import Client, ClientError
from nodeagent.client.calls import CALL_TIMEOUT_S


class Unreachable(Failure):
    """Nobody answers at the socket."""


class Refused(Failure):
    """The daemon will not do it as things are, and changed nothing."""


@contextmanager
def opened(path: Path, timeout_s: float = CALL_TIMEOUT_S) -> Iterator[Client]:
    """A client whose calls wait for a daemon that pauses, ``timeout_s`` at most.

    Raises Unreachable, saying which socket and what to do; within, Failure for what a call ends with.
    """
    _try_to_connect(path, min(timeout_s, CALL_TIMEOUT_S))
    with Client(path, timeout_s=timeout_s, wait_for_ready=True) as client:
        try:
            yield client
        except ClientError as error:
            raise _failure(path, error, timeout_s) from error


def _try_to_connect(path: Path, timeout_s: float) -> None:
    """What the system says of the socket is plainer than what gRPC makes of it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(timeout_s)
        try:
            probe.connect(os.fspath(path))
        except OSError as error:
            raise _unreachable(path, error) from error


def _unreachable(path: Path, error: OSError) -> Unreachable:
    start = 'start it with "systemctl start nodeagent" or "nodeagent run"'
    match error.errno:
        case errno.ENOENT | errno.ENOTDIR:
            return Unreachable(
                f"the daemon is not running: no socket {path}; {start}, or name its socket with --socket",
                EXIT_UNAVAILABLE,
            )
        case errno.ECONNREFUSED:
            return Unreachable(
                f"the daemon is not running: nothing listens at {path}; {start}", EXIT_UNAVAILABLE
            )
        case errno.EACCES | errno.EPERM:
            todo = f"run as root, or join its group (ls -l {path})"
            return Unreachable(f"permission denied on {path}: {todo}", EXIT_NOT_ALLOWED)
        case _:
            reason = error.strerror or str(error)
            return Unreachable(f"the daemon cannot be asked at {path}: {reason}", EXIT_UNAVAILABLE)


def _failure(path: Path, error: ClientError, timeout_s: float) -> Failure:
    match error.status:
        case "UNAVAILABLE" | "CANCELLED":
            return Unreachable(f"the daemon at {path} does not answer: {error.reason}", EXIT_UNAVAILABLE)
        case "DEADLINE_EXCEEDED":
            return Unreachable(
                f"the daemon at {path} did not answer within {timeout_s:g} s", EXIT_UNAVAILABLE
            )
        case "PERMISSION_DENIED":
            return Failure(f"not allowed: {error.reason}", EXIT_NOT_ALLOWED)
        case "UNIMPLEMENTED":
            return Failure(f"the daemon cannot do that: {error.reason}", EXIT_FAILED)
        case "FAILED_PRECONDITION":
            return Refused(error.reason, EXIT_FAILED)
        case _:
            return Failure(error.reason or error.status, EXIT_FAILED)
