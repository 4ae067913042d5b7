"""The gRPC doors: the public socket, the control socket behind its relay, and TCP with mutual TLS.

The same services stand behind each; who calls, and so what he may do, is told by the door. On the
public socket nobody is an operator. It opens and closes doors and holds no state of its own.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2
from grpc_health.v1.health_pb2_grpc import add_HealthServicer_to_server

from nodeagent.config import Config
from nodeagent.core.catalog import Catalog
from nodeagent.outlets import rpc
from nodeagent.outlets.addresses import AddressError, check_address, open_or_keep_trying
from nodeagent.outlets.control_service import ControlService, RefusalLimit
from nodeagent.outlets.credentials import (
    OPERATOR_GROUP,
    READER_GROUP,
    Identify,
    certificate_caller,
    local_caller,
    public_caller,
)
from nodeagent.outlets.fault_service import FaultService, Shown
from nodeagent.outlets.node import NodeFacts
from nodeagent.outlets.pb import control_service_pb2, fault_service_pb2
from nodeagent.outlets.reflection import add_reflection
from nodeagent.outlets.relay import Relay
from nodeagent.outlets.sockets import (
    OutletError,
    listen,
    open_to,
    owner_only,
    prepare,
    private_directory,
)
from nodeagent.outlets.watch import Pace, Sources, of_view
from nodeagent.store.board import Board
from nodeagent.store.ledger import Ledger

FAULT_SERVICE = fault_service_pb2.DESCRIPTOR.services_by_name["FaultService"]
CONTROL_SERVICE = control_service_pb2.DESCRIPTOR.services_by_name["ControlService"]

MAX_CALLS = 640
"""Of one door at once, streams included; more are answered RESOURCE_EXHAUSTED."""

END_LIMIT_S = 1.0
"""How long the ending of calls may take beyond their grace."""

OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_receive_message_length", 1 << 20),
    ("grpc.max_send_message_length", 64 << 20),
    ("grpc.max_concurrent_streams", 128),
    ("grpc.so_reuseport", 0),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
)

_log = logging.getLogger(__name__)


class GrpcServer:
    """All doors of one daemon. ``catalog`` gives the one in force, ``servants`` serve operators' calls,
    ``sources`` are those to show beside a view, if others than its own.
    """

    def __init__(
        self,
        *,
        board: Board,
        ledger: Ledger,
        catalog: Callable[[], Catalog],
        facts: NodeFacts,
        config: Config,
        pace: Pace | None = None,
        servants: Sequence[object] = (),
        sources: Sources = of_view,
    ) -> None:
        self._config = config
        self._ledger = ledger
        self._shown = Shown(
            board=board,
            ledger=ledger,
            catalog=catalog,
            facts=facts,
            pace=pace or Pace(),
            sources=sources,
        )
        self._servants = servants
        self._refusals = RefusalLimit()
        self._health = health.aio.HealthServicer()
        self._servers: list[grpc.aio.Server] = []
        self._relay: Relay | None = None
        self._trying: asyncio.Task[None] | None = None
        self.hangs = False
        self.tcp_port = 0

    async def start(self) -> None:
        """Opens every door, not yet serving. Raises ``OutletError``; then none stays open.

        TCP comes later where its address cannot be had yet: ``tcp_port`` is 0 until then.
        """
        try:
            await self.set_serving(False)
            await self._open_public(Path(self._config.agent.socket))
            await self._open_control(Path(self._config.agent.control_socket))
            if self._config.grpc.listen:
                await self._open_tcp(self._config.grpc.listen)
        except OutletError:
            await self.stop()
            raise

    async def set_serving(self, serving: bool) -> None:
        """What ``grpc.health.v1`` answers, for the daemon and for each service."""
        words = health_pb2.HealthCheckResponse
        status = words.SERVING if serving else words.NOT_SERVING
        for service in ("", FAULT_SERVICE.full_name, CONTROL_SERVICE.full_name):
            await self._health.set(service, status)

    async def stop(self, grace_s: float = 0.5) -> None:
        """Says NOT_SERVING, lets calls end for a while, then ends them.

        gRPC may wait for ever for a peer that takes nothing any more: then ``hangs`` is true, and only the
        end of the process ends that connection.
        """
        await self._health.enter_graceful_shutdown()
        if self._trying is not None:
            self._trying.cancel()
        if self._servers and not self.hangs:
            stopping = [asyncio.create_task(server.stop(grace_s)) for server in self._servers]
            _, hanging = await asyncio.wait(stopping, timeout=grace_s + END_LIMIT_S)
            self.hangs = bool(hanging)
        if self.hangs:
            # Not let go of: gRPC waits for the connection there too.
            _log.warning("a connection whose peer takes nothing could not be closed and is left behind")
        else:
            self._servers.clear()
        if self._relay is not None:
            await self._relay.stop()
            self._relay = None

    async def _open_public(self, path: Path) -> None:
        prepare(path, "agent.socket")
        server = self._server(public_caller)
        with owner_only():
            _bind(lambda: server.add_insecure_port(f"unix:{path}"), "agent.socket", str(path))
        await self._begin(server)
        open_to(path, READER_GROUP)

    async def _open_control(self, path: Path) -> None:
        key = "agent.control_socket"
        listener = listen(path, key)
        private = private_directory(path.with_name(f".{path.name}.private"), key) / "grpc.sock"
        prepare(private, key)
        relay = self._relay = Relay(listener, private)
        server = self._server(lambda context: local_caller(relay.peer(context.peer())))
        with owner_only():
            _bind(lambda: server.add_insecure_port(f"unix:{private}"), key, str(private))
        await self._begin(server)
        await relay.start()
        open_to(path, OPERATOR_GROUP)

    async def _open_tcp(self, address: str) -> None:
        from nodeagent.outlets.tls import CertificateFiles, server_credentials  # only where TCP is configured

        grpc_config = self._config.grpc
        files = CertificateFiles(
            certificate=Path(grpc_config.tls_cert),
            key=Path(grpc_config.tls_key),
            client_ca=Path(grpc_config.tls_client_ca),
        )
        credentials = server_credentials(files)

        async def open_door() -> None:
            await asyncio.to_thread(check_address, address, "grpc.listen")
            server = self._server(certificate_caller(grpc_config.roles))
            try:
                port = _bind(lambda: server.add_secure_port(address, credentials), "grpc.listen", address)
            except OutletError as error:
                raise AddressError(str(error)) from error
            await self._begin(server)
            self.tcp_port = port

        self._trying = await open_or_keep_trying(open_door, "no TCP")

    def _server(self, identify: Identify) -> grpc.aio.Server:
        server = grpc.aio.server(options=OPTIONS, maximum_concurrent_rpcs=MAX_CALLS)
        faults = FaultService(self._shown, identify)
        control = ControlService(self._ledger, identify, self._refusals, self._servants)
        server.add_generic_rpc_handlers(
            (
                rpc.handlers(FAULT_SERVICE, lambda method: getattr(faults, rpc.snake_case(method))),
                rpc.handlers(CONTROL_SERVICE, control.behaviour_of),
            )
        )
        add_HealthServicer_to_server(self._health, server)
        add_reflection(server, (FAULT_SERVICE.full_name, CONTROL_SERVICE.full_name), identify)
        return server

    async def _begin(self, server: grpc.aio.Server) -> None:
        await server.start()
        self._servers.append(server)


def _bind(bind: Callable[[], Any], key: str, address: str) -> int:
    try:
        return int(bind())
    except RuntimeError as error:
        raise OutletError(f"{key}: cannot listen on {address}: {error}") from error
