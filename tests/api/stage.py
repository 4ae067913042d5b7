"""A small daemon without a core: a real store, a real event feed, real gRPC servers. The test is its pump."""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import msgspec

from nodeagent.api.access.credentials import Caller, Role
from nodeagent.api.control.service import Serve
from nodeagent.api.control.tables import Reload, Tables
from nodeagent.api.faults.watch import StreamPace
from nodeagent.api.messages import NodeFacts
from nodeagent.api.server import GrpcServer
from nodeagent.client import AsyncClient
from nodeagent.config.config import Config
from nodeagent.config.load import load_config
from nodeagent.config.sections import AgentConfig, GrpcConfig, NvrxConfig
from nodeagent.core.model import Condition, DeviceView, Event, EventKind, Level, Verdict, View
from nodeagent.store.event_feed import EventFeed
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import Committed, Publication, StoredEvent, StoreId, Transaction
from tests.api import samples
from tests.store.samples import PATIENT

FACTS = NodeFacts(
    node_id="0123456789abcdef0123456789abcdef",
    node_name="rack7-node3",
    boot_id="b007",
    version="0.1.0",
    started_wall_ns=1_700_000_000 * samples.SECOND_NS,
)
OFFSET_NS = 1_700_000_000 * samples.SECOND_NS
NOW_NS = 5 * samples.SECOND_NS
LONG_NS = 31 * 86_400 * samples.SECOND_NS
ROOT = Caller(identity="uid:0", role=Role.OPERATOR, who="uid 0", is_operator=True)
IMPATIENT = StreamPace(after_held_back_s=0.02, quiet_s=0.02)


def named(name: str) -> NodeFacts:
    """Of a node among others."""
    return replace(FACTS, node_id=name, node_name=name)


class Stage:
    """Open it with ``open``; ``commit`` does what the pump does with the outcome of a step."""

    def __init__(
        self,
        directory: Path,
        grpc: GrpcConfig | None = None,
        pace: StreamPace | None = None,
        reload: Reload | None = None,
        nvrx: NvrxConfig | None = None,
        facts: NodeFacts = FACTS,
    ) -> None:
        self.socket = directory / "nodeagent.sock"
        self.control_socket = directory / "control.sock"
        agent = AgentConfig(socket=str(self.socket), control_socket=str(self.control_socket))
        self.config: Config = msgspec.structs.replace(
            load_config(None, {}), agent=agent, grpc=grpc or GrpcConfig(), nvrx=nvrx or NvrxConfig()
        )
        self._state = directory / "state"
        self._pace = pace
        self._reload = reload
        self._facts = facts
        self._devices: dict[str, DeviceView] = {}
        self._conditions: dict[str, Condition] = {}
        self.readings: dict[str, dict[str, float]] = {}
        self.ledger = Ledger(self._state, "machine-a", limits=PATIENT)
        self.feed = EventFeed()
        self.server = self._server()

    async def open(self) -> None:
        recovery = await self.ledger.open()
        self._publish(recovery.store_id, recovery.last_seq, recovery.durable)
        await self.server.start()
        self.server.set_serving(True)

    async def close(self) -> None:
        await self.server.stop(grace_s=0.1)
        await self.ledger.close()

    async def reopen(self) -> None:
        """As a restart of the daemon: the same store, new servers on the same sockets."""
        await self.close()
        self.ledger = Ledger(self._state, "machine-a", limits=PATIENT)
        self.feed = EventFeed()
        self.server = self._server()
        await self.open()

    async def commit(self, *events: Event, long_ago: bool = False, wall_ns: int | None = None) -> Committed:
        """``long_ago``: before what is retained, by the rule clock. ``wall_ns``: instead of now."""
        for event in events:
            self._devices[event.device] = samples.device(event)
            if event.kind is EventKind.RAISED:
                self._conditions[event.condition_id] = samples.condition(event)
            elif event.kind is EventKind.CLEARED:
                self._conditions.pop(event.condition_id, None)
        events_then = [replace(each, at_ns=each.at_ns - LONG_NS) for each in events] if long_ago else events
        committed = await self.ledger.commit(
            Transaction(
                events=tuple((wall_ns or time.time_ns(), each) for each in events_then), engine_now_ns=NOW_NS
            )
        )
        self._publish(committed.store_id, committed.last_seq, committed.durable, committed.events)
        return committed

    def unknown(self, device: str) -> None:
        """Publishes it as one that was never read."""
        seen = samples.device(samples.event(device, level=Level.NOT_HANDLE))
        self._devices[device] = replace(seen, verdict=Verdict.UNKNOWN, observed=False)
        current = self.feed.current
        self._publish(current.store_id, current.seq, current.durable)

    def publish_in_epoch(self, epoch: int, *events: Event, durable: bool = False) -> None:
        """As when a commit fails: the next events are published in memory only, under another epoch."""
        current = self.feed.current
        stored = tuple(
            StoredEvent(seq=current.seq + place, wall_ns=time.time_ns(), event=event)
            for place, event in enumerate(events, 1)
        )
        for event in events:
            self._devices[event.device] = samples.device(event)
        store_id = StoreId(uuid=current.store_id.uuid, epoch=epoch)
        self._publish(store_id, current.seq + len(events), durable, stored)

    def client(self) -> AsyncClient:
        return AsyncClient(self.socket)

    def operator(self) -> AsyncClient:
        return AsyncClient(self.control_socket)

    def _server(self) -> GrpcServer:
        return GrpcServer(
            feed=self.feed,
            ledger=self.ledger,
            catalog=lambda: samples.CATALOG,
            facts=self._facts,
            config=self.config,
            pace=self._pace,
            served=self._served(),
            readings=lambda: self.readings,
        )

    def _served(self) -> Mapping[str, Serve]:
        return (
            {} if self._reload is None else {"ReloadTables": Tables(self._facts, self._reload).reload_tables}
        )

    def _publish(
        self, store_id: StoreId, seq: int, durable: bool, events: tuple[StoredEvent, ...] = ()
    ) -> None:
        view = View(
            now_ns=NOW_NS,
            boot_id=self._facts.boot_id,
            digest=samples.CATALOG.digest,
            devices=(samples.NODE_DEVICE, *self._devices.values()),
            conditions=tuple(self._conditions.values()),
            holds=(samples.HOLD,) if "gpu0" in self._devices else (),
            sources=(samples.SOURCE,),
        )
        publication = Publication(
            view=view, store_id=store_id, seq=seq, durable=durable, wall_offset_ns=OFFSET_NS
        )
        self.feed.publish(publication, events)
