"""Admission of calls: identifies the caller, takes a place, reads the request, before any service sees it.

One interceptor runs before every method of every service behind a socket, also those that come with gRPC
(health, reflection). It handles each call from its first header on, as a stream of one request: so a call
that never sends its request takes a place too, and what is no message of the method's type is refused in
plain words.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Final, Protocol

import grpc
from google.protobuf.message import DecodeError

from nodeagent.api.access import limits
from nodeagent.api.access.credentials import Caller, Identify
from nodeagent.api.access.quota import LimitedCaller, Quota, Rate
from nodeagent.api.refusal import Refusal, Status

Answer = Callable[[Caller, grpc.aio.ServicerContext], Awaitable[None]]

RETRY_HINT: Final = "grpc-retry-pushback-ms"

STATUS_CODES: dict[Status, grpc.StatusCode] = {status: grpc.StatusCode[status.name] for status in Status}


class Connections(Protocol):
    """What admission does with connections; see ``Relay``."""

    def rest(self, identity: str, rest_s: float) -> None: ...

    def drop(self, grpc_peer: str) -> None: ...

    def call_begun(self, grpc_peer: str) -> None: ...

    def call_ended(self, grpc_peer: str) -> None: ...


def room_for(answers: Quota, caller: LimitedCaller, size: int) -> AbstractAsyncContextManager[None]:
    """Room for an answer of so many bytes, while it is made and until it is taken."""
    return nullcontext() if size <= limits.SMALL_ANSWER_BYTES else answers.held(caller, size)


class Places:
    """What the calls of all sockets share."""

    def __init__(self) -> None:
        self.open = Quota(limits.OPEN_CALLS)
        self.calls = Quota(limits.CALLS)
        self.streams = Quota(limits.STREAMS)
        self.answers = Quota(limits.ANSWER_BYTES)
        self.rate = Rate(limits.CALL_RATE)


class Admission(grpc.aio.ServerInterceptor):  # type: ignore[misc] # comes without types
    """Admits the callers of one socket, whom ``identify`` names."""

    def __init__(self, identify: Identify, places: Places, connections: Connections) -> None:
        self._identify = identify
        self._places = places
        self._connections = connections
        self._guarded: dict[str, grpc.RpcMethodHandler] = {}

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler | None:
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        method = handler_call_details.method
        if method not in self._guarded:
            self._guarded[method] = self._guard(handler, method.rpartition("/")[2])
        return self._guarded[method]

    def _guard(self, handler: grpc.RpcMethodHandler, method: str) -> grpc.RpcMethodHandler:
        quota = self._places.streams if handler.response_streaming else self._places.calls
        answer = self._answer(handler, method)

        async def serve(_requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext) -> None:
            caller = self._identify(context)
            self._count(caller)
            self._connections.call_begun(context.peer())
            try:
                async with self._places.open.held(caller):
                    await self._served(context, caller, quota, answer)
            except (Refusal, _NotTaken) as too_much:
                self._connections.drop(context.peer())
                raise asyncio.CancelledError from too_much
            except grpc.aio.InternalError as gone:
                # The client ended the call amid a read or a write; gRPC would report that as a fault of ours.
                raise asyncio.CancelledError from gone
            finally:
                self._connections.call_ended(context.peer())

        def serialised(response: Any) -> bytes:
            return response if isinstance(response, bytes) else handler.response_serializer(response)

        return grpc.stream_stream_rpc_method_handler(serve, response_serializer=serialised)

    def _count(self, caller: Caller) -> None:
        """A caller that exceeds its rate is not read from for a while."""
        rest_s = 0.0 if caller.is_operator else self._places.rate.spend(caller.counted_as)
        if rest_s > 0:
            self._connections.rest(caller.identity, min(rest_s, limits.MAX_REST_S))

    async def _served(
        self, context: grpc.aio.ServicerContext, caller: Caller, quota: Quota, answer: Answer
    ) -> None:
        try:
            async with quota.held(caller):
                await answer(caller, context)
        except Refusal as refusal:
            await _taken(context.abort(STATUS_CODES[refusal.status], refusal.reason, _hint(refusal)))

    def _answer(self, handler: grpc.RpcMethodHandler, method: str) -> Answer:
        """What a handler does, of each sort: one answer, a coroutine that writes, a generator of answers."""
        last_size = 0

        async def once(caller: Caller, context: grpc.aio.ServicerContext) -> None:
            nonlocal last_size
            request = await _request(handler, method, context)
            # It will be about as large as the last one.
            async with room_for(self._places.answers, caller, last_size):
                answer = handler.response_serializer(await handler.unary_unary(request, context))
                last_size = len(answer)
                await _taken(context.write(answer))

        async def stream(_caller: Caller, context: grpc.aio.ServicerContext) -> None:
            await handler.unary_stream(await _request(handler, method, context), context)

        async def talk(_caller: Caller, context: grpc.aio.ServicerContext) -> None:
            async for response in handler.stream_stream(_requests(handler, method, context), context):
                await context.write(response)

        if handler.request_streaming:
            return talk
        return stream if handler.response_streaming else once


def _hint(refusal: Refusal) -> tuple[tuple[str, str], ...]:
    """When to try again, as gRPC's own retries read it (its proposal A6, "pushback")."""
    if refusal.retry_after_s is None:
        return ()
    return ((RETRY_HINT, str(math.ceil(refusal.retry_after_s * 1000))),)


class _NotTaken(Exception):
    """The client has not read what it was sent for so long that it keeps places and room from others."""


async def _taken(writing: Awaitable[None]) -> None:
    """Raises ``_NotTaken``."""
    try:
        async with asyncio.timeout(limits.ANSWER_LIMIT_S):
            await writing
    except TimeoutError as error:
        raise _NotTaken from error


async def _request(handler: grpc.RpcMethodHandler, method: str, context: grpc.aio.ServicerContext) -> Any:
    try:
        async with asyncio.timeout(limits.REQUEST_LIMIT_S):
            message = await context.read()
    except TimeoutError as error:
        reason = f"{method}: no request came within {limits.REQUEST_LIMIT_S:g} s"
        raise Refusal(Status.DEADLINE_EXCEEDED, reason) from error
    if message is grpc.aio.EOF:
        raise Refusal(Status.INVALID_ARGUMENT, f"{method}: the call ended without a request")
    return _decoded(handler, method, message)


async def _requests(
    handler: grpc.RpcMethodHandler, method: str, context: grpc.aio.ServicerContext
) -> AsyncIterator[Any]:
    while (message := await context.read()) is not grpc.aio.EOF:
        yield _decoded(handler, method, message)


def _decoded(handler: grpc.RpcMethodHandler, method: str, message: bytes) -> Any:
    try:
        return handler.request_deserializer(message)
    except DecodeError as error:
        reason = f"{method}: the request is no message of this method: {error}"
        raise Refusal(Status.INVALID_ARGUMENT, reason) from error
