"""A stage that listens on TCP, with an authority of its own and clients with certificates of it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import grpc

from nodeagent.client import AsyncClient, ClientError
from nodeagent.config.sections import GrpcConfig
from nodeagent.messages.pb import control_service_pb2, fault_service_pb2
from tests.api.certificates import Authority, Certificate
from tests.api.stage import Stage

SERVER_NAMES = "DNS:localhost,IP:127.0.0.1"
ROLES: Mapping[str, str] = {
    "scheduler.example.org": "reader",
    "operator.example.org": "operator",
    "checker.example.org": "reporter",
    "banned.example.org": "none",
}


READ = fault_service_pb2.GetNodeRequest()
CONTROL = control_service_pb2.QuiesceRequest()
REPORT = control_service_pb2.ReportPublicFaultRequest()


def configured(authority: Authority, server: Certificate, roles: Mapping[str, str] = ROLES) -> GrpcConfig:
    return GrpcConfig(
        listen="127.0.0.1:0",
        tls_cert=str(server.certificate),
        tls_key=str(server.key),
        tls_client_ca=str(authority.certificate),
        roles=roles,  # type: ignore[arg-type] # words that the configuration has checked
    )


@asynccontextmanager
async def opened(place: Path, grpc_config: GrpcConfig) -> AsyncIterator[Stage]:
    stage = Stage(place, grpc_config)
    await stage.open()
    try:
        yield stage
    finally:
        await stage.close()


def client(stage: Stage, authority: Authority, own: Certificate | None) -> AsyncClient:
    credentials = grpc.ssl_channel_credentials(
        authority.certificate.read_bytes(),
        own.key.read_bytes() if own else None,
        own.certificate.read_bytes() if own else None,
    )
    return AsyncClient(f"127.0.0.1:{stage.server.tcp_port}", credentials)


async def answer(stage: Stage, authority: Authority, own: Certificate | None, request: object) -> str:
    async with client(stage, authority, own) as connected:
        try:
            await connected.call(request)  # type: ignore[arg-type] # one of two kinds of request
        except ClientError as error:
            return f"{error.status}: {error.reason}"
    return "OK"
