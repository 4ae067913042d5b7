"""The way to the daemon: one connection to a unix socket, calls with a deadline, and errors in plain words.

It asks again nothing by itself and interprets no answer.
"""

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from nodeagent.cli.failure import EXIT_FAILED, EXIT_NOT_ALLOWED, EXIT_UNAVAILABLE, Failure

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # or its library writes to our standard error

import grpc
from google.protobuf.message import Message

from nodeagent.client import calls

Answer = TypeVar("Answer", bound=Message)


class Unreachable(Failure):
    """Nobody answers at the socket."""


class Refused(Failure):
    """The daemon will not do it as things are, and changed nothing."""


class Door:
    """An open connection. ``close`` it; a stream that is still read ends with it."""

    def __init__(self, path: Path) -> None:
        """Raises Unreachable, saying which socket and what to do."""
        _try_to_connect(path)
        self._path = path
        self._channel = grpc.insecure_channel(calls.target(path), options=calls.OPTIONS)

    def close(self) -> None:
        self._channel.close()

    def call(
        self, request: Message, answer: type[Answer], *, timeout_s: float = calls.CALL_TIMEOUT_S
    ) -> Answer:
        """Raises Failure, or Unreachable where the daemon went away meanwhile. It waits while that pauses."""
        ask = self._channel.unary_unary(
            calls.path_of(request),
            request_serializer=type(request).SerializeToString,
            response_deserializer=answer.FromString,
        )
        with _plain_words(self._path, timeout_s):
            answered = ask(request, timeout=timeout_s, wait_for_ready=True)
        if not isinstance(answered, answer):
            raise TypeError(f"{calls.path_of(request)} answered a {type(answered).__name__}")
        return answered

    def stream(
        self, request: Message, answer: type[Answer], *, timeout_s: float | None = None
    ) -> Iterator[Answer]:
        """Every message until the stream ends or the iterator is closed. Raises as ``call`` does."""
        ask = self._channel.unary_stream(
            calls.path_of(request),
            request_serializer=type(request).SerializeToString,
            response_deserializer=answer.FromString,
        )
        # Without a limit whoever asks wants to be told that the daemon has gone.
        answers = ask(request, timeout=timeout_s, wait_for_ready=timeout_s is not None)
        try:
            with _plain_words(self._path, timeout_s):
                yield from answers
        finally:
            answers.cancel()


@contextmanager
def opened(path: Path) -> Iterator[Door]:
    door = Door(path)
    try:
        yield door
    finally:
        door.close()


def _try_to_connect(path: Path) -> None:
    """What the system says of the socket is plainer than what gRPC makes of it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(calls.CALL_TIMEOUT_S)
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
                f"the daemon is not running: nobody listens at {path}; {start}", EXIT_UNAVAILABLE
            )
        case errno.EACCES | errno.EPERM:
            who = f"root may, and the members of its group (ls -l {path})"
            return Unreachable(f"you may not ask the daemon at {path}: {who}", EXIT_NOT_ALLOWED)
        case _:
            reason = error.strerror or str(error)
            return Unreachable(f"the daemon cannot be asked at {path}: {reason}", EXIT_UNAVAILABLE)


@contextmanager
def _plain_words(path: Path, timeout_s: float | None) -> Iterator[None]:
    try:
        yield
    except grpc.RpcError as error:
        raise _failure(path, error, timeout_s) from error


def _failure(path: Path, error: Any, timeout_s: float | None) -> Failure:
    """``error`` is a grpc.RpcError, which says more than its type does."""
    status, details = error.code(), error.details()
    match status:
        case grpc.StatusCode.UNAVAILABLE | grpc.StatusCode.CANCELLED:
            return Unreachable(f"the daemon at {path} does not answer: {details}", EXIT_UNAVAILABLE)
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            within = "" if timeout_s is None else f" within {timeout_s:g} s"
            return Unreachable(f"the daemon at {path} did not answer{within}", EXIT_UNAVAILABLE)
        case grpc.StatusCode.PERMISSION_DENIED:
            return Failure(f"not allowed: {details}", EXIT_NOT_ALLOWED)
        case grpc.StatusCode.UNIMPLEMENTED:
            return Failure(f"the daemon cannot do that: {details}", EXIT_FAILED)
        case grpc.StatusCode.FAILED_PRECONDITION:
            return Refused(details, EXIT_FAILED)
        case _:
            return Failure(details or status.name, EXIT_FAILED)
