"""The same client for asyncio; the methods say no more than those of ``Client``."""

import asyncio
import os
from collections.abc import AsyncGenerator, Iterable
from types import TracebackType
from typing import Any, Self

import grpc
from google.protobuf.message import Message

from nodeagent.client import calls, received
from nodeagent.client.errors import ClientError
from nodeagent.client.session import Session
from nodeagent.client.values import Condition, Consumer, Device, Job, Position, Update
from nodeagent.core.model import EventKind, Level
from nodeagent.messages import enums
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.messages.pb import types_pb2


class AsyncClient:
    """One daemon. Make it in the loop that uses it."""

    def __init__(
        self,
        socket: str | os.PathLike[str] | None = None,
        credentials: grpc.ChannelCredentials | None = None,
        timeout_s: float = calls.CALL_TIMEOUT_S,
    ) -> None:
        target = calls.target(socket)
        self._timeout_s = timeout_s
        if credentials is None:
            self._channel = grpc.aio.insecure_channel(target, options=calls.OPTIONS)
        else:
            self._channel = grpc.aio.secure_channel(target, credentials, options=calls.OPTIONS)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._channel.close()

    async def watch(
        self,
        after: Position | None = None,
        *,
        consumer: str = "",
        snapshot: str = "if_needed",
        kinds: Iterable[EventKind] = (),
        devices: Iterable[str] = (),
        minimum_level: Level | None = None,
    ) -> AsyncGenerator[Update, None]:
        """As ``Client.watch``."""
        session = Session(
            after=after,
            consumer=consumer,
            snapshot=snapshot,
            kinds=kinds,
            devices=devices,
            minimum_level=minimum_level,
        )
        while True:
            request = session.request()
            stream = self._channel.unary_stream(
                calls.path_of(request),
                request_serializer=pb.WatchRequest.SerializeToString,
                response_deserializer=pb.WatchResponse.FromString,
            )(request)
            try:
                async for response in stream:
                    for update in session.updates(response):
                        yield update
                ended = ClientError("UNAVAILABLE", "the daemon ended the stream")
            except grpc.aio.AioRpcError as failure:
                ended = calls.error_of(failure)
            finally:
                stream.cancel()
            await asyncio.sleep(session.pause_s(ended))

    async def ack(self, consumer: str, position: Position) -> int:
        """As ``Client.ack``."""
        store_id = types_pb2.StoreId(uuid=position.uuid, epoch=position.epoch)
        answer = await self.call(pb.AckRequest(consumer=consumer, store_id=store_id, seq=position.seq))
        return int(answer.seq)

    async def consumers(self) -> tuple[Consumer, ...]:
        """As ``Client.consumers``."""
        answer = await self.call(pb.ListConsumersRequest())
        return tuple(received.consumer(each) for each in answer.consumers)

    async def delete_consumer(self, name: str) -> None:
        """As ``Client.delete_consumer``."""
        await self.call(pb.DeleteConsumerRequest(consumer=name))

    async def devices(self, names: Iterable[str] = ()) -> tuple[Device, ...]:
        """As ``Client.devices``."""
        answer = await self.call(pb.ListDevicesRequest(devices=names))
        return tuple(received.device(each) for each in answer.devices)

    async def conditions(
        self, devices: Iterable[str] = (), minimum_level: Level | None = None
    ) -> tuple[Condition, ...]:
        """As ``Client.conditions``."""
        level = enums.level_number(minimum_level)
        answer = await self.call(pb.ListConditionsRequest(devices=devices, minimum_level=level))
        return tuple(received.condition(each) for each in answer.conditions)

    async def jobs(self) -> tuple[Job, ...]:
        """As ``Client.jobs``."""
        answer = await self.call(pb.ListJobsRequest())
        return tuple(received.job(each) for each in answer.jobs)

    async def call(self, request: Message) -> Any:
        """As ``Client.call``."""
        method = self._channel.unary_unary(
            calls.path_of(request),
            request_serializer=type(request).SerializeToString,
            response_deserializer=calls.response_class(request).FromString,
        )
        try:
            return await method(request, timeout=self._timeout_s)
        except grpc.aio.AioRpcError as failure:
            raise calls.error_of(failure) from failure
