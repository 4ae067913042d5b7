"""What a caller learns of the interface itself: its version, what this daemon can do, the caller's role, and
gRPC reflection.

The version is that of ``proto/``, not of the daemon. ``tests/api/test_interface.py`` compares it with the
descriptors in ``proto/kept``. Every reader may use reflection: the interface is no secret and shows nothing
of this node.
"""

from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from typing import Any, Final

import grpc
from grpc_reflection.v1alpha._async import ReflectionServicer
from grpc_reflection.v1alpha.reflection import SERVICE_NAME
from grpc_reflection.v1alpha.reflection_pb2_grpc import add_ServerReflectionServicer_to_server

from nodeagent.api.access.credentials import Caller, Identify, Role, reader
from nodeagent.config.config import Config
from nodeagent.messages.pb import fault_service_pb2 as pb

MAJOR: Final = 1
MINOR: Final = 2
"""One more than the newest in ``proto/kept``, as soon as anything is added."""

_ALWAYS: Final = (
    pb.CAPABILITY_EVENTS_BY_TIME,
    pb.CAPABILITY_EVENTS_BY_CODE,
    pb.CAPABILITY_REWIND_CONSUMER,
)

_ROLES: Final[Mapping[Role, pb.CallerRole]] = {
    Role.NONE: pb.CALLER_ROLE_UNSPECIFIED,
    Role.READER: pb.CALLER_ROLE_READER,
    Role.REPORTER: pb.CALLER_ROLE_REPORTER,
    Role.OPERATOR: pb.CALLER_ROLE_OPERATOR,
}


def version() -> pb.ApiVersion:
    return pb.ApiVersion(major=MAJOR, minor=MINOR)


def capabilities(config: Config) -> tuple[pb.Capability, ...]:
    """What a daemon with this configuration can do."""
    return (*_ALWAYS, pb.CAPABILITY_SUPERVISED_JOBS) if config.jobs.enabled else _ALWAYS


def caller(value: Caller) -> pb.Caller:
    return pb.Caller(identity=value.identity, role=_ROLES[value.role])


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
