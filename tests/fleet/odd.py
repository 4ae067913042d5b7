"""A gRPC server that answers each Watch with the same bytes: what no daemon of ours would send."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc

from nodeagent.messages.pb import fault_service_pb2 as pb


@asynccontextmanager
async def sending(socket: Path, answer: bytes) -> AsyncIterator[list[pb.WatchRequest]]:
    """What it was asked for."""
    asked: list[pb.WatchRequest] = []

    async def watch(request: pb.WatchRequest, _context: grpc.aio.ServicerContext) -> AsyncIterator[bytes]:
        asked.append(request)
        yield answer

    handler = grpc.unary_stream_rpc_method_handler(watch, request_deserializer=pb.WatchRequest.FromString)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("nodeagent.v1.FaultService", {"Watch": handler}),)
    )
    server.add_insecure_port(f"unix:{socket}")
    await server.start()
    try:
        yield asked
    finally:
        await server.stop(None)
