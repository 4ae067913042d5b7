"""Connections to one daemon, one that blocks and one for asyncio: any method can be called by its request.

The type of a request names the method, since every method has a request of its own.
"""

import os
from collections.abc import AsyncGenerator, Generator, Mapping
from types import TracebackType
from typing import Any, Self

import grpc
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from nodeagent.messages.pb import control_service_pb2, fault_service_pb2

DEFAULT_SOCKET = "/run/nodeagent/nodeagent.sock"
SOCKET_VARIABLE = "NODEAGENT_SOCKET"
CALL_TIMEOUT_S = 10.0
RETRY_HINT = "grpc-retry-pushback-ms"

OPTIONS = (
    ("grpc.max_receive_message_length", 64 << 20),
    ("grpc.initial_reconnect_backoff_ms", 100),
    # In spite of its name the least deadline of an attempt to connect, not a pause between two (gRPC's
    # subchannel.cc, StartConnectingLocked): a daemon that pauses for longer breaks calls.
    ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.enable_http_proxy", 0),
    # A node that loses its power sends nothing: a stream would wait for it for ever.
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


class ClientError(Exception):
    """The daemon refused, or does not answer. ``status`` is the name of the gRPC status, ``reason`` its text.

    ``retry_after_s`` is when to try again, where the daemon gives it.
    """

    def __init__(self, status: str, reason: str, retry_after_s: float | None = None) -> None:
        super().__init__(f"{status}: {reason}")
        self.status = status
        self.reason = reason
        self.retry_after_s = retry_after_s


def target(socket: str | os.PathLike[str] | None) -> str:
    """What gRPC connects to: the socket given, else ``$NODEAGENT_SOCKET``, else where the daemon listens.

    A name with a colon and no slash is ``HOST:PORT``.
    """
    path = os.fspath(socket or os.environ.get(SOCKET_VARIABLE) or DEFAULT_SOCKET)
    is_address = ":" in path and "/" not in path
    return path if is_address else f"unix:{os.path.abspath(path)}"  # noqa: PTH100 # no file is touched


def _method(request: Message) -> tuple[str, Any, Any]:
    """``/package.Service/Method``, what serialises its request, and what makes its response."""
    method = _METHODS[request.DESCRIPTOR.full_name]
    path = f"/{method.containing_service.full_name}/{method.name}"
    return path, type(request).SerializeToString, GetMessageClass(method.output_type).FromString


def error_of(failure: grpc.RpcError) -> ClientError:
    code: grpc.StatusCode = failure.code()
    hints = [value for key, value in failure.trailing_metadata() or () if key == RETRY_HINT]
    retry_after_s = int(hints[0]) / 1000 if hints and str(hints[0]).isdecimal() else None
    return ClientError(code.name, failure.details() or "", retry_after_s)


class DaemonConnection:
    """One daemon. ``socket`` is a path, or ``HOST:PORT`` with ``credentials`` for mutual TLS.

    ``wait_for_ready``: where no daemon answers, a call with a time limit ends with that limit, and not at
    once.
    """

    def __init__(
        self,
        socket: str | os.PathLike[str] | None = None,
        credentials: grpc.ChannelCredentials | None = None,
        timeout_s: float = CALL_TIMEOUT_S,
        *,
        wait_for_ready: bool = False,
    ) -> None:
        self._timeout_s = timeout_s
        self._wait_for_ready = wait_for_ready
        if credentials is None:
            self._channel = grpc.insecure_channel(target(socket), options=OPTIONS)
        else:
            self._channel = grpc.secure_channel(target(socket), credentials, options=OPTIONS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._channel.close()

    def call(self, request: Message) -> Any:
        """Any method that answers once. Raises ``ClientError``."""
        method = self._channel.unary_unary(*_method(request))
        try:
            return method(request, timeout=self._timeout_s, wait_for_ready=self._wait_for_ready)
        except grpc.RpcError as failure:
            raise error_of(failure) from failure

    def stream(self, request: Message, *, timeout_s: float | None = None) -> Generator[Any, None, None]:
        """Any method that answers with a stream, until it ends or is closed. Raises ``ClientError``."""
        method = self._channel.unary_stream(*_method(request))
        wait_for_ready = self._wait_for_ready and timeout_s is not None
        answers = method(request, timeout=timeout_s, wait_for_ready=wait_for_ready)
        try:
            yield from answers
        except grpc.RpcError as failure:
            raise error_of(failure) from failure
        finally:
            answers.cancel()


class AsyncDaemonConnection:
    """The same for asyncio. Make it in the loop that uses it. ``options`` are gRPC's own for the channel;
    they override those of ``OPTIONS``.
    """

    def __init__(
        self,
        socket: str | os.PathLike[str] | None = None,
        credentials: grpc.ChannelCredentials | None = None,
        timeout_s: float = CALL_TIMEOUT_S,
        *,
        options: Mapping[str, str | int] | None = None,
    ) -> None:
        self._timeout_s = timeout_s
        merged = tuple({**dict(OPTIONS), **(options or {})}.items())
        if credentials is None:
            self._channel = grpc.aio.insecure_channel(target(socket), options=merged)
        else:
            self._channel = grpc.aio.secure_channel(target(socket), credentials, options=merged)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._channel.close()

    async def call(self, request: Message) -> Any:
        """Any method that answers once. Raises ``ClientError``."""
        method = self._channel.unary_unary(*_method(request))
        try:
            return await method(request, timeout=self._timeout_s)
        except grpc.aio.AioRpcError as failure:
            raise error_of(failure) from failure

    async def stream(self, request: Message) -> AsyncGenerator[Any, None]:
        """Any method that answers with a stream, until it ends or is closed. Raises ``ClientError``."""
        method = self._channel.unary_stream(*_method(request))
        answers = method(request)
        try:
            # Not "async for": its generator and the call would keep each other alive, and with them the
            # connection, until Python looks for such cycles.
            while (answer := await answers.read()) is not grpc.aio.EOF:
                if answer is None:  # what gRPC's asyncio makes of bytes that are no such message
                    raise ClientError("INTERNAL", "the answer is not a message of this method")
                yield answer
        except grpc.aio.AioRpcError as failure:
            raise error_of(failure) from failure
        finally:
            answers.cancel()
