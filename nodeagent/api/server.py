"""The gRPC sockets: the public one, the control one, and TCP with mutual TLS, each behind a relay of its own.

Each offers the same services; the relay and TLS give the caller, and so its role.
The socket of NVRx has another service, and places of its own, since every user of the node may call there.
It opens and closes, and holds no state of its own.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import grpc

from nodeagent.api import interface, rpc_binding
from nodeagent.api.access import credentials, limits
from nodeagent.api.access.admission import Admission, Places
from nodeagent.api.access.credentials import (
    OPERATOR_GROUP,
    READER_GROUP,
    Caller,
    FindCaller,
    Identify,
    Recognise,
)
from nodeagent.api.access.quota import Quota
from nodeagent.api.access.relay import Relay
from nodeagent.api.access.sockets import (
    OutletError,
    bound,
    listen_at,
    open_or_keep_trying,
    open_to,
    open_to_everybody,
    owner_only,
    prepare,
    private_directory,
)
from nodeagent.api.control.audit import AuditLog
from nodeagent.api.control.service import ControlService, Serve
from nodeagent.api.faults.consumers import ConsumerService
from nodeagent.api.faults.service import FaultService, Readings, ServedState
from nodeagent.api.faults.watch import StreamPace
from nodeagent.api.health import HEALTH_SERVICE, HealthService
from nodeagent.api.interface import add_reflection
from nodeagent.api.messages import NodeFacts
from nodeagent.api.nvrx import SERVICE as NODE_HEALTH_SERVICE
from nodeagent.api.nvrx import NodeHealthService
from nodeagent.config.config import Config
from nodeagent.core.catalog.catalog import Catalog
from nodeagent.job.lines import LearntLimits
from nodeagent.messages.pb import control_service_pb2, fault_service_pb2
from nodeagent.store.event_feed import EventFeed
from nodeagent.store.ledger import Ledger

FAULT_SERVICE = fault_service_pb2.DESCRIPTOR.services_by_name["FaultService"]
CONTROL_SERVICE = control_service_pb2.DESCRIPTOR.services_by_name["ControlService"]

END_LIMIT_S = 1.0
"""How long the ending of calls may take beyond their grace."""


class GrpcServer:
    """All sockets of one daemon. ``catalog`` gives the one in force, ``served`` is what serves
    operators' calls, ``limits`` gives what the supervisor of a job has learnt, ``readings`` the last of each
    observed device.
    """

    def __init__(
        self,
        *,
        feed: EventFeed,
        ledger: Ledger,
        catalog: Callable[[], Catalog],
        facts: NodeFacts,
        config: Config,
        pace: StreamPace | None = None,
        served: Mapping[str, Serve] | None = None,
        limits: Callable[[str], LearntLimits] | None = None,
        readings: Readings = dict,
    ) -> None:
        self._config = config
        self._shown = ServedState(
            feed=feed,
            ledger=ledger,
            catalog=catalog,
            facts=facts,
            pace=pace or StreamPace(),
            capabilities=interface.capabilities(config),
            limits=limits,
            readings=readings,
        )
        self._served = served or {}
        self._audit = AuditLog(ledger)
        self.places = Places()
        self._health = HealthService(("", FAULT_SERVICE.full_name, CONTROL_SERVICE.full_name))
        self._servers: list[grpc.aio.Server] = []
        self._relays: list[Relay] = []
        self._trying: asyncio.Task[None] | None = None
        self.tcp_port = 0

    async def start(self) -> None:
        """Opens every socket, not yet serving. Raises ``OutletError``; then none stays open.

        TCP comes later where its address cannot be had yet: ``tcp_port`` is 0 until then.
        """
        agent = self._config.agent
        try:
            await self._open_local(_PUBLIC, Path(agent.socket))
            await self._open_local(_CONTROL, Path(agent.control_socket))
            if self._config.nvrx.socket:
                await self._open_local(_NVRX, Path(self._config.nvrx.socket))
            if self._config.grpc.listen:
                await self._open_tcp(self._config.grpc.listen)
        except OutletError:
            await self.stop()
            raise

    def set_serving(self, serving: bool) -> None:
        """What ``grpc.health.v1`` answers, for the daemon and for each service."""
        self._health.set_serving(serving)

    async def stop(self, grace_s: float = 0.5) -> None:
        """Says NOT_SERVING, lets calls end for a while, then ends them, and every connection."""
        self._health.set_serving(False)
        if self._trying is not None:
            self._trying.cancel()
        stopping = [asyncio.create_task(server.stop(grace_s)) for server in self._servers]
        if stopping:
            await asyncio.wait(stopping, timeout=grace_s + END_LIMIT_S)
        # gRPC waits for ever for a peer that takes nothing: the end of its connection ends that too.
        for relay in self._relays:
            await relay.stop()
        await asyncio.gather(*stopping)
        self._servers.clear()
        self._relays.clear()

    async def _open_local(self, kind: "_LocalSocket", path: Path) -> None:
        prepare(path, kind.key)
        make = self._node_health_server if kind is _NVRX else self._server
        relay = await self._serve_behind_relay(
            path, kind.key, kind.recognise, kind.find_caller, kind.limit, make
        )
        relay.start([bound(path, kind.key)])
        if kind.group is None:
            open_to_everybody(path, kind.key)
        else:
            open_to(path, kind.group, kind.key)

    async def _open_tcp(self, address: str) -> None:
        from nodeagent.api.access.tls import ServerCertificateFiles, server_credentials

        grpc_config = self._config.grpc
        beside = Path(self._config.agent.control_socket)
        relay = await self._serve_behind_relay(
            beside.with_name(f"{beside.name}.tcp"),
            "agent.control_socket",
            credentials.tcp_peer,
            credentials.certificate_caller(grpc_config.roles),
            limits.TCP_CONNECTIONS,
            self._server,
            server_credentials(ServerCertificateFiles.configured(grpc_config)),
        )

        async def listen() -> None:
            listeners = await asyncio.to_thread(listen_at, address, "grpc.listen")
            relay.start(listeners)
            self.tcp_port = listeners[0].getsockname()[1]

        self._trying = await open_or_keep_trying(listen, "no TCP")

    async def _serve_behind_relay(
        self,
        name: Path,
        key: str,
        recognise: Recognise,
        find_caller: FindCaller,
        limit: limits.Limit,
        make: Callable[[Relay, Identify], grpc.aio.Server],
        tls: grpc.ServerCredentials | None = None,
    ) -> Relay:
        """A gRPC server on a private socket beside ``name``, and its relay, which does not listen yet."""
        private = private_directory(name.with_name(f".{name.name}.private"), key) / "grpc.sock"
        prepare(private, key)
        # Over TCP no caller is known to be an operator before its first call.
        kept_later = 0 if tls is None else limit.kept
        relay = Relay(private, recognise, Quota(replace(limit, kept=limit.kept - kept_later)), kept_later)
        server = make(relay, _identify(relay, find_caller))
        with owner_only():
            try:
                if tls is None:
                    server.add_insecure_port(f"unix:{private}")
                else:
                    server.add_secure_port(f"unix:{private}", tls)
            except RuntimeError as error:
                raise OutletError(f"{key}: cannot listen on {private}: {error}") from error
        await server.start()
        self._servers.append(server)
        self._relays.append(relay)
        return relay

    def _server(self, relay: Relay, identify: Identify) -> grpc.aio.Server:
        admission = Admission(identify, self.places, relay)
        server = grpc.aio.server(options=_options(), interceptors=(admission,))
        faults = FaultService(self._shown, identify, self.places.answers)
        consumers = ConsumerService(self._shown.ledger, self._shown.facts, identify, self._audit)
        control = ControlService(self._audit, identify, self._served)
        server.add_generic_rpc_handlers(
            (
                rpc_binding.handlers(FAULT_SERVICE, rpc_binding.methods_of(faults, consumers)),
                rpc_binding.handlers(CONTROL_SERVICE, control.behaviour_of),
                rpc_binding.handlers(HEALTH_SERVICE, rpc_binding.methods_of(self._health)),
            )
        )
        add_reflection(server, (FAULT_SERVICE.full_name, CONTROL_SERVICE.full_name), identify)
        return server

    def _node_health_server(self, relay: Relay, identify: Identify) -> grpc.aio.Server:
        admission = Admission(identify, Places(), relay)
        options = _options(limits.NODE_HEALTH_REQUEST_BYTES, limits.NODE_HEALTH_CALLS_ON_CONNECTION)
        server = grpc.aio.server(options=options, interceptors=(admission,))
        health = NodeHealthService(self._shown.feed)
        server.add_generic_rpc_handlers(
            (rpc_binding.handlers(NODE_HEALTH_SERVICE, rpc_binding.methods_of(health)),)
        )
        return server


@dataclass(frozen=True, slots=True, kw_only=True)
class _LocalSocket:
    """What distinguishes the local sockets. ``key`` is the config's. Without a ``group``: for everybody."""

    key: str
    group: str | None
    recognise: Recognise
    find_caller: FindCaller
    limit: limits.Limit


_PUBLIC = _LocalSocket(
    key="agent.socket",
    group=READER_GROUP,
    recognise=credentials.public_peer,
    find_caller=credentials.public_caller,
    limit=limits.PUBLIC_CONNECTIONS,
)
_CONTROL = _LocalSocket(
    key="agent.control_socket",
    group=OPERATOR_GROUP,
    recognise=credentials.control_peer,
    find_caller=credentials.control_caller,
    limit=limits.CONTROL_CONNECTIONS,
)

_NVRX = _LocalSocket(
    key="nvrx.socket",
    group=None,
    recognise=credentials.public_peer,
    find_caller=credentials.public_caller,
    limit=limits.NODE_HEALTH_CONNECTIONS,
)


def _options(
    request_bytes: int = limits.MAX_REQUEST_BYTES, calls_on_connection: int = limits.STREAMS_ON_CONNECTION
) -> Sequence[tuple[str, int]]:
    """gRPC's own limits, by connection; each was tried against a peer that goes beyond it."""
    return (
        ("grpc.max_receive_message_length", request_bytes),
        ("grpc.max_send_message_length", 64 << 20),
        ("grpc.max_concurrent_streams", calls_on_connection),
        ("grpc.server.max_pending_requests", limits.PENDING_CALLS),
        ("grpc.server.max_pending_requests_hard_limit", 2 * limits.PENDING_CALLS),
        ("grpc.server_handshake_timeout_ms", int(limits.HANDSHAKE_LIMIT_S * 1000)),
        ("grpc.keepalive_time_ms", 30_000),
        ("grpc.keepalive_timeout_ms", 10_000),
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    )


def _identify(relay: Relay, find_caller: FindCaller) -> Identify:
    """The caller of a connection is identified once, by its first call."""

    def identify(context: grpc.aio.ServicerContext) -> Caller:
        grpc_peer = context.peer()
        peer = relay.peer(grpc_peer)
        if peer is None:
            return credentials.STRANGER
        if peer.caller is None:
            relay.know(grpc_peer, find_caller(peer, context))
        return peer.caller or credentials.STRANGER

    return identify
