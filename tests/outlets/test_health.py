"""grpc.health.v1: what a supervisor or a load balancer sees of the daemon's life."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.outlets.stage import Stage

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@asynccontextmanager
async def asking(path: Path) -> AsyncIterator[health_pb2_grpc.HealthStub]:
    async with grpc.aio.insecure_channel(f"unix:{path}") as channel:
        yield health_pb2_grpc.HealthStub(channel)


async def test_a_daemon_that_has_not_begun_does_not_serve(place: Path) -> None:
    stage = Stage(place)
    await stage.ledger.open()
    await stage.server.start()
    async with asking(stage.socket) as health:
        before = await health.Check(health_pb2.HealthCheckRequest())
        await stage.server.set_serving(True)
        after = await health.Check(health_pb2.HealthCheckRequest())
    await stage.close()
    assert (before.status, after.status) == (NOT_SERVING, SERVING)


async def test_each_service_is_told_of_by_its_name(stage: Stage) -> None:
    async with asking(stage.socket) as health:
        for service in ("nodeagent.v1.FaultService", "nodeagent.v1.ControlService"):
            answer = await health.Check(health_pb2.HealthCheckRequest(service=service))
            assert answer.status == SERVING


async def test_who_watches_is_told_when_the_daemon_stops(stage: Stage) -> None:
    async with asking(stage.socket) as health:
        call = health.Watch(health_pb2.HealthCheckRequest())
        assert (await call.read()).status == SERVING
        await stage.server.set_serving(False)
        assert (await call.read()).status == NOT_SERVING
        call.cancel()
