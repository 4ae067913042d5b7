"""``grpc.health.v1``: what a supervisor or a load balancer asks. It knows only what the daemon sets.

The servicer that comes with gRPC writes to one watcher while it holds the lock that all share: one that takes
nothing keeps all others waiting, and the daemon from stopping. Here each watcher waits for itself.
"""

import asyncio
from collections.abc import Iterable

import grpc
from grpc_health.v1 import health_pb2 as pb

from nodeagent.api.refusal import Refusal, Status

HEALTH_SERVICE = pb.DESCRIPTOR.services_by_name["Health"]


class HealthService:
    """``services`` all have one status. Shared by all sockets; used from one event loop."""

    def __init__(self, services: Iterable[str]) -> None:
        self._services = frozenset(services)
        self._serving = False
        self._changed = asyncio.Event()

    def set_serving(self, serving: bool) -> None:
        self._serving = serving
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def check(
        self, request: pb.HealthCheckRequest, _context: grpc.aio.ServicerContext
    ) -> pb.HealthCheckResponse:
        if request.service not in self._services:
            known = ", ".join(sorted(filter(None, self._services)))
            raise Refusal(Status.NOT_FOUND, f"service: there are {known}, and none for the daemon")
        return self._response(request.service)

    async def list(
        self, _request: pb.HealthListRequest, _context: grpc.aio.ServicerContext
    ) -> pb.HealthListResponse:
        return pb.HealthListResponse(statuses={name: self._response(name) for name in self._services})

    async def watch(self, request: pb.HealthCheckRequest, context: grpc.aio.ServicerContext) -> None:
        """A service that there is none of is watched too, as the protocol wants it."""
        sent = None
        while True:
            changed, response = self._changed, self._response(request.service)
            if response != sent:
                await context.write(response)
                sent = response
            await changed.wait()

    def _response(self, service: str) -> pb.HealthCheckResponse:
        words = pb.HealthCheckResponse
        if service not in self._services:
            return words(status=words.SERVICE_UNKNOWN)
        return words(status=words.SERVING if self._serving else words.NOT_SERVING)
