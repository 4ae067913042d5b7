"""The daemon's store as a node that answers questions: for commands that read while no daemon answers.

The service of the API itself makes the answers, from the state as of the last commit. No device is read,
nothing is followed, and no order is taken. The store is opened for reading alone.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Final, TypeVar

from google.protobuf.message import Message

from nodeagent.api.access.credentials import Caller, Role
from nodeagent.api.access.limits import Limit
from nodeagent.api.access.quota import Quota
from nodeagent.api.control.audit import AuditLog, AuditReader
from nodeagent.api.faults.consumers import ConsumerService
from nodeagent.api.faults.service import FaultService, ServedState
from nodeagent.api.faults.watch import StreamPace
from nodeagent.api.messages import NodeFacts
from nodeagent.api.refusal import Refusal
from nodeagent.cli.ask.self_check import LastLife, StoreUnusable
from nodeagent.client import ClientError
from nodeagent.core.catalog.catalog import Catalog
from nodeagent.daemon import systemd
from nodeagent.messages.pb import control_service_pb2 as control_pb
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.replay import store_file
from nodeagent.replay.reading import ReplayError
from nodeagent.store import queries
from nodeagent.store.change import AuditRow
from nodeagent.store.consumers import Consumer, Consumers
from nodeagent.store.event_feed import EventFeed
from nodeagent.store.records import Publication, StoredEvent, StoreId

T = TypeVar("T")

_READER: Final = Caller(identity="store", role=Role.READER, who="a reader of the store")
_ANSWERS: Final = Limit(what="answers", each=1, total=1, kept=0)


class StoredNode:
    """As ``nodeagent.client.Client``, for requests that read. Raises ``ClientError`` as that does."""

    def __init__(self, last: LastLife, catalog: Catalog, node_name: str) -> None:
        feed = EventFeed()
        anchor = last.anchor
        feed.publish(
            Publication(
                view=last.engine.view(),
                store_id=last.store_id,
                seq=last.last_seq,
                durable=True,
                wall_offset_ns=anchor.wall_ns - anchor.rule_ns if anchor else 0,
            )
        )
        ledger: Any = _StoredEvents(last)
        facts = NodeFacts(
            node_id=systemd.machine_id(),
            node_name=node_name,
            boot_id=anchor.boot_id if anchor else "",
            version="",
            started_wall_ns=0,
        )
        self.as_of_ns = feed.current.view.now_ns + feed.current.wall_offset_ns
        self._audit = AuditLog(ledger)
        self._shown = ServedState(
            feed=feed,
            ledger=ledger,
            catalog=lambda: catalog,
            facts=facts,
            pace=StreamPace(),
            capabilities=(),
        )

    def call(self, request: Message) -> Any:
        """The response."""
        service = self._service()
        consumers = ConsumerService(self._shown.ledger, self._shown.facts, _identified, self._audit)
        methods: dict[type[Message], Callable[..., Coroutine[Any, Any, Any]]] = {
            pb.GetNodeRequest: service.get_node,
            pb.ListDevicesRequest: service.list_devices,
            pb.ListConditionsRequest: service.list_conditions,
            pb.ListJobsRequest: service.list_jobs,
            pb.ListReadingsRequest: service.list_readings,
            pb.ListEventsRequest: service.list_events,
            pb.WhyDeviceRequest: service.why_device,
            pb.ExplainCodeRequest: service.explain_code,
            pb.ListConsumersRequest: consumers.list_consumers,
            control_pb.ListAuditRequest: self._list_audit,
        }
        answer = _ran(methods[type(request)](request, None))
        return pb.ListEventsResponse.FromString(answer) if isinstance(answer, bytes) else answer

    def stream(self, request: Message, *, timeout_s: float | None = None) -> Iterator[Any]:
        """Of Watch the Snapshot alone: nothing follows it, so that no time limit is needed."""
        del timeout_s
        assert isinstance(request, pb.WatchRequest)
        first = _First()
        context: Any = first
        try:
            _ran(self._service().watch(request, context))
        except _FirstWritten:
            yield pb.WatchResponse.FromString(first.written)

    def _service(self) -> FaultService:
        return FaultService(self._shown, _identified, Quota(_ANSWERS))

    async def _list_audit(self, request: control_pb.ListAuditRequest, _context: object) -> Message:
        """Who may read the file may read what it holds."""
        reader = AuditReader(self._shown.ledger, self._shown.facts)
        return (await reader.list_audit(_READER, request)).message


def _identified(_context: object) -> Caller:
    return _READER


class _FirstWritten(Exception):
    """A stream has written its first response."""


class _First:
    """The context of a stream that ends with its first response."""

    written = b""

    async def write(self, response: bytes) -> None:
        self.written = response
        raise _FirstWritten


class _StoredEvents:
    """What the services ask of a ledger: its events, consumers and audit log, from the file."""

    def __init__(self, last: LastLife) -> None:
        self._database = last.database
        self._consumers = Consumers(last.consumers)
        self.last_seq = last.last_seq
        self.last_audit = last.last_audit
        self.oldest_seq = last.oldest_seq
        self.store_id: StoreId = last.store_id
        self.durable = True

    async def read_events(self, after_seq: int, limit: int) -> list[StoredEvent]:
        return self._read(lambda disk: queries.read_events(disk, after_seq, self.last_seq, limit)[0])

    async def first_since(self, after_seq: int, until_seq: int, since_ns: int) -> int | None:
        return self._read(lambda disk: queries.first_since(disk, after_seq, until_seq, since_ns))

    async def last_before(self, after_seq: int, until_seq: int, until_ns: int) -> int | None:
        return self._read(lambda disk: queries.last_before(disk, after_seq, until_seq, until_ns))

    async def read_audit(self, after_number: int, limit: int) -> list[AuditRow]:
        return self._read(lambda disk: queries.read_audits(disk, after_number, limit))

    def consumers(self) -> tuple[Consumer, ...]:
        return self._consumers.all()

    def consumer(self, name: str) -> Consumer | None:
        return self._consumers.get(name)

    def _read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """Raises ``StoreUnusable``."""
        try:
            with store_file.opened(self._database) as connection:
                return query(connection)
        except ReplayError as error:
            raise StoreUnusable(
                "; ".join(f"{each.file}: {each.reason}" for each in error.problems)
            ) from error


def _ran(coroutine: Coroutine[Any, Any, T]) -> T:
    try:
        return asyncio.run(coroutine)
    except Refusal as refusal:
        raise ClientError(refusal.status.name, refusal.reason) from refusal
    except StoreUnusable as error:
        raise ClientError("DATA_LOSS", str(error)) from error
