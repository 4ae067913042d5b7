"""Which method a request belongs to: its type's name says it, since every method has its own request."""

import os
from typing import Any

import grpc
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from nodeagent.client.errors import ClientError
from nodeagent.messages.pb import control_service_pb2, fault_service_pb2

DEFAULT_SOCKET = "/run/nodeagent/nodeagent.sock"
SOCKET_VARIABLE = "NODEAGENT_SOCKET"
CALL_TIMEOUT_S = 10.0
RETRY_HINT = "grpc-retry-pushback-ms"

OPTIONS = (
    ("grpc.max_receive_message_length", 64 << 20),
    ("grpc.initial_reconnect_backoff_ms", 100),
    # In spite of its name the least deadline of an attempt to connect, and no pause between two (gRPC's
    # subchannel.cc, StartConnectingLocked): a daemon that pauses for longer breaks calls.
    ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.enable_http_proxy", 0),
    # A node that loses its power says nothing: a stream would wait on it for ever.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.ping_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
)

_SERVICES = (
    *fault_service_pb2.DESCRIPTOR.services_by_name.values(),
    *control_service_pb2.DESCRIPTOR.services_by_name.values(),
)
_METHODS = {method.input_type.full_name: method for service in _SERVICES for method in service.methods}


def target(socket: str | os.PathLike[str] | None) -> str:
    """What gRPC connects to: the socket given, else ``$NODEAGENT_SOCKET``, else where the daemon listens.

    A name with a colon and no slash is ``HOST:PORT``.
    """
    path = os.fspath(socket or os.environ.get(SOCKET_VARIABLE) or DEFAULT_SOCKET)
    is_address = ":" in path and "/" not in path
    return path if is_address else f"unix:{os.path.abspath(path)}"  # noqa: PTH100 # no file is touched


def path_of(request: Message) -> str:
    """``/package.Service/Method``."""
    method = _METHODS[request.DESCRIPTOR.full_name]
    return f"/{method.containing_service.full_name}/{method.name}"


def response_class(request: Message) -> Any:
    return GetMessageClass(_METHODS[request.DESCRIPTOR.full_name].output_type)


def error_of(failure: grpc.RpcError) -> ClientError:
    code: grpc.StatusCode = failure.code()
    hints = [value for key, value in failure.trailing_metadata() or () if key == RETRY_HINT]
    retry_after_s = int(hints[0]) / 1000 if hints and str(hints[0]).isdecimal() else None
    return ClientError(code.name, failure.details() or "", retry_after_s)
