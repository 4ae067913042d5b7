"""Reading a Watch as it comes over the wire, message by message."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc

from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.messages.pb import types_pb2
from nodeagent.store.records import StoreId

WATCH = "/nodeagent.v1.FaultService/Watch"


class Watching:
    """One stream."""

    def __init__(self, channel: grpc.aio.Channel, request: pb.WatchRequest) -> None:
        self.call = channel.unary_stream(
            WATCH,
            request_serializer=pb.WatchRequest.SerializeToString,
            response_deserializer=pb.WatchResponse.FromString,
        )(request)

    async def next(self) -> pb.WatchResponse:
        response = await self.call.read()
        assert isinstance(response, pb.WatchResponse), await self.call.details()
        return response

    async def snapshot(self) -> pb.Snapshot:
        response = await self.next()
        assert response.WhichOneof("payload") == "snapshot"
        return response.snapshot

    async def bookmark(self) -> int:
        response = await self.next()
        assert response.WhichOneof("payload") == "bookmark"
        return response.bookmark.seq

    async def batch(self) -> list[types_pb2.Event]:
        response = await self.next()
        assert response.WhichOneof("payload") == "batch"
        return list(response.batch.events)

    async def numbers(self, count: int) -> list[int]:
        """The numbers of the next events, read batch by batch until there are so many."""
        found: list[int] = []
        while len(found) < count:
            found += [event.seq for event in await self.batch()]
        return found

    async def refusal(self) -> tuple[grpc.StatusCode, str]:
        try:
            response = await self.call.read()
        except grpc.aio.AioRpcError as error:
            return error.code(), error.details() or ""
        raise AssertionError(f"answered: {response}")


@asynccontextmanager
async def watching(socket: Path, request: pb.WatchRequest | None = None) -> AsyncIterator[Watching]:
    async with grpc.aio.insecure_channel(f"unix:{socket}") as channel:
        stream = Watching(channel, request or pb.WatchRequest())
        try:
            yield stream
        finally:
            stream.call.cancel()


def after(store_id: StoreId, seq: int, snapshot: pb.SnapshotMode | None = None) -> pb.WatchRequest:
    return pb.WatchRequest(
        store_id=types_pb2.StoreId(uuid=store_id.uuid, epoch=store_id.epoch),
        after_seq=seq,
        snapshot=pb.SNAPSHOT_MODE_UNSPECIFIED if snapshot is None else snapshot,
    )
