"""gRPC reflection, for everybody who may read: the interface is no secret, and shows nothing of this node."""

from collections.abc import AsyncIterable, AsyncIterator, Sequence
from typing import Any

import grpc
from grpc_reflection.v1alpha._async import ReflectionServicer
from grpc_reflection.v1alpha.reflection import SERVICE_NAME
from grpc_reflection.v1alpha.reflection_pb2_grpc import add_ServerReflectionServicer_to_server

from nodeagent.api.access.credentials import Identify, reader


def add_reflection(server: grpc.aio.Server, services: Sequence[str], identify: Identify) -> None:
    """Adds the service to one server; callers who may not read get PERMISSION_DENIED."""
    names = (*services, "grpc.health.v1.Health", SERVICE_NAME)
    add_ServerReflectionServicer_to_server(_ForReaders(names, identify), server)


class _ForReaders(ReflectionServicer):  # type: ignore[misc] # comes without types
    def __init__(self, names: Sequence[str], identify: Identify) -> None:
        super().__init__(names)
        self._identify = identify

    async def ServerReflectionInfo(  # the service's own name
        self, request_iterator: AsyncIterable[Any], context: grpc.aio.ServicerContext
    ) -> AsyncIterator[Any]:
        reader(self._identify, context)
        async for response in super().ServerReflectionInfo(request_iterator, context):
            yield response
