"""grpc.health.v1: what a supervisor or a load balancer sees of the daemon's life."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.api import http2
from tests.api.stage import Stage
from tests.waiting import until

LIMIT_S = 10.0

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
        stage.server.set_serving(True)
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
        stage.server.set_serving(False)
        assert (await call.read()).status == NOT_SERVING
        call.cancel()


async def test_a_watcher_that_takes_nothing_keeps_nobody_from_being_told_nor_the_daemon_from_stopping(
    place: Path,
) -> None:
    stage = Stage(place)
    await stage.open()
    with http2.connected(stage.socket, window=0) as deaf:
        deaf.sendall(http2.call(0, "/grpc.health.v1.Health/Watch", b""))
        await until(lambda: stage.server.places.streams.taken == 1)
        async with asking(stage.socket) as health, asyncio.timeout(LIMIT_S):
            call = health.Watch(health_pb2.HealthCheckRequest())
            assert (await call.read()).status == SERVING
            stage.server.set_serving(False)
            assert (await call.read()).status == NOT_SERVING
            call.cancel()
        async with asyncio.timeout(LIMIT_S):
            await stage.close()


async def test_a_service_that_there_is_none_of_is_not_found_and_watched_as_unknown(stage: Stage) -> None:
    unknown = health_pb2.HealthCheckRequest(service="nodeagent.v9.FaultService")
    async with asking(stage.socket) as health:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await health.Check(unknown)
        call = health.Watch(unknown)
        assert (await call.read()).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
        call.cancel()
        listed = await health.List(health_pb2.HealthListRequest())
    assert refused.value.code() is grpc.StatusCode.NOT_FOUND
    assert {name: response.status for name, response in listed.statuses.items()} == {
        "": SERVING,
        "nodeagent.v1.FaultService": SERVING,
        "nodeagent.v1.ControlService": SERVING,
    }
