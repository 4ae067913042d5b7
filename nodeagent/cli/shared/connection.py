"""The connection to the daemon: a client on a unix socket, whose errors end the command with one clear line.

It also has the calls that several commands make, and what they report of an answer. It repeats no call.
"""

import errno
import os
import socket
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from nodeagent.cli.shared.errors import EXIT_FAILED, EXIT_NOT_ALLOWED, EXIT_UNAVAILABLE, CommandFailure
from nodeagent.cli.shared.output import note

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # otherwise its library writes to our standard error

from google.protobuf.message import Message

from nodeagent.client import Client, ClientError
from nodeagent.client.calls import CALL_TIMEOUT_S
from nodeagent.messages.pb import fault_service_pb2 as pb

_MOST_NAMED = 20
_MOST_NEAR = 3
_FAMILY = "*"


class Unreachable(CommandFailure):
    """No daemon answers at the socket."""


class DaemonRefused(CommandFailure):
    """The daemon refused in its present state, and changed nothing."""


@contextmanager
def opened(path: Path, timeout_s: float = CALL_TIMEOUT_S) -> Iterator[Client]:
    """A client whose calls wait for a daemon that pauses, for ``timeout_s`` at most.

    Raises ``Unreachable``, which names the socket and what to do. A call inside raises ``CommandFailure``.
    """
    _try_to_connect(path, min(timeout_s, CALL_TIMEOUT_S))
    with Client(path, timeout_s=timeout_s, wait_for_ready=True) as client, explained(path, timeout_s):
        yield client


@contextmanager
def explained(path: Path, timeout_s: float) -> Iterator[None]:
    """Raises ``CommandFailure`` in place of what a client raises."""
    try:
        yield
    except ClientError as error:
        raise _failure(path, error, timeout_s) from error


def _try_to_connect(path: Path, timeout_s: float) -> None:
    """The error of the system is clearer than the one that gRPC makes of it."""
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


def _failure(path: Path, error: ClientError, timeout_s: float) -> CommandFailure:
    match error.status:
        case "UNAVAILABLE" | "CANCELLED":
            return Unreachable(f"the daemon at {path} does not answer: {error.reason}", EXIT_UNAVAILABLE)
        case "DEADLINE_EXCEEDED":
            return Unreachable(
                f"the daemon at {path} did not answer within {timeout_s:g} s", EXIT_UNAVAILABLE
            )
        case "PERMISSION_DENIED":
            return CommandFailure(f"not allowed: {error.reason}", EXIT_NOT_ALLOWED)
        case "UNIMPLEMENTED":
            return CommandFailure(f"the daemon cannot do that: {error.reason}", EXIT_FAILED)
        case "FAILED_PRECONDITION":
            return DaemonRefused(error.reason, EXIT_FAILED)
        case _:
            return CommandFailure(error.reason or error.status, EXIT_FAILED)


class Reader(Protocol):
    """A client, or what answers in place of one."""

    def call(self, request: Message) -> Any: ...

    def stream(self, request: Message, *, timeout_s: float | None = None) -> Iterator[Any]: ...


def take_snapshot(daemon: Reader, limit_s: float = CALL_TIMEOUT_S) -> pb.WatchResponse:
    """The response that holds the Snapshot, and with it node, store and durability."""
    request = pb.WatchRequest(snapshot=pb.SNAPSHOT_MODE_ALWAYS)
    response: pb.WatchResponse
    for response in daemon.stream(request, timeout_s=limit_s):
        if response.HasField("snapshot"):
            return response
    raise CommandFailure("the daemon ended the stream before it sent its state", EXIT_UNAVAILABLE)


def unknown_devices(daemon: Reader, wanted: Collection[str]) -> list[str]:
    """A sentence for each name or id that no device has, with the nearest name."""
    if not wanted:
        return []
    devices = daemon.call(pb.ListDevicesRequest()).devices
    known = {name for device in devices for name in (device.name, device.id)}
    there = ", ".join(device.name for device in devices[:_MOST_NAMED]) or "none yet"
    more = f" and {len(devices) - _MOST_NAMED} more" if len(devices) > _MOST_NAMED else ""
    return [
        f"device {each!r} is not known{_nearest_device(each, known)}; there are: {there}{more}"
        for each in wanted
        if each not in known
    ]


def _nearest_device(unknown: str, known: Collection[str]) -> str:
    from nodeagent.api.request_fields import nearest_name

    near = nearest_name(unknown, known)
    return f"; the nearest is {near}" if near else ""


def unknown_codes(daemon: Reader, wanted: Iterable[str]) -> list[str]:
    """A sentence for each code that is in no table; of a family (XID_*) that is unknown."""
    codes = [each for each in wanted if not each.endswith(_FAMILY)]
    if not codes:
        return []
    explanations = daemon.call(pb.ExplainCodeRequest(codes=codes)).explanations
    return [f"code {each.code!r} is in no table{_near(each)}" for each in explanations if not each.known]


def _near(unknown: pb.CodeExplanation) -> str:
    """At most a few: the same number may begin many codes."""
    near = [*unknown.same_number, *unknown.nearest][:_MOST_NEAR]
    return f"; the nearest: {', '.join(near)}" if near else ""


def warn_not_durable(answer: Message) -> None:
    """Warn on standard error where an order is in force but not on the disk. The order has not failed."""
    if reason := getattr(answer, "not_durable_reason", ""):
        why = f"the store's disk fails ({reason})"
        note(f"nodeagent: not durable: {why}; this order is lost if the daemon restarts")
