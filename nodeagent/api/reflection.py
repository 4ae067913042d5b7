"""gRPC reflection, for operators only: it shows the whole API to whoever asks."""

from collections.abc import AsyncIterable, AsyncIterator, Sequence
from typing import Any

import grpc
from grpc_reflection.v1alpha._async import ReflectionServicer
from grpc_reflection.v1alpha.reflection import SERVICE_NAME
from grpc_reflection.v1alpha.reflection_pb2_grpc import add_ServerReflectionServicer_to_server

from nodeagent.api.access.credentials import Identify, Role


def add_reflection(server: grpc.aio.Server, services: Sequence[str], identify: Identify) -> None:
    """Adds the service to one server; callers who are no operators get PERMISSION_DENIED."""
    names = (*services, "grpc.health.v1.Health", SERVICE_NAME)
    add_ServerReflectionServicer_to_server(_ForOperators(names, identify), server)


class _ForOperators(ReflectionServicer):  # type: ignore[misc] # comes without types
    def __init__(self, names: Sequence[str], identify: Identify) -> None:
        super().__init__(names)
        self._identify = identify

    async def ServerReflectionInfo(  # the service's own name
        self, request_iterator: AsyncIterable[Any], context: grpc.aio.ServicerContext
    ) -> AsyncIterator[Any]:
        caller = self._identify(context)
        if caller.role is not Role.OPERATOR:
            await context.abort(
                grpc.StatusCode.PERMISSION_DENIED, f"reflection is for operators: {caller.advice}"
            )
        async for response in super().ServerReflectionInfo(request_iterator, context):
            yield response
