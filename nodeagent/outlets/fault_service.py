"""FaultService: reads what is published and what is stored. It changes nothing but consumers' positions."""

from collections.abc import Callable
from contextlib import aclosing

import grpc

from nodeagent.core.catalog import Catalog
from nodeagent.core.lookup import Lookup
from nodeagent.core.model import NODE
from nodeagent.outlets import explain, history, messages, messages_of_actions
from nodeagent.outlets.credentials import Caller, Identify, Role
from nodeagent.outlets.filters import Filter, device_names, level_of
from nodeagent.outlets.frames import Frames
from nodeagent.outlets.known import known_device
from nodeagent.outlets.node import NodeFacts
from nodeagent.outlets.pb import fault_service_pb2 as pb
from nodeagent.outlets.refusal import Refusal, Status
from nodeagent.outlets.watch import Pace, Position, Sources, Subscription
from nodeagent.store.board import Board
from nodeagent.store.errors import (
    BeyondLastError,
    ConsumerError,
    OtherOwnerError,
    OtherStoreError,
    TooManyConsumersError,
)
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import Publication

MAX_STREAMS = 512
MAX_CONSUMER_LENGTH = 128
MAX_CODES = 100

_CONSUMER_ERRORS = {
    OtherStoreError: Status.FAILED_PRECONDITION,
    BeyondLastError: Status.INVALID_ARGUMENT,
    OtherOwnerError: Status.PERMISSION_DENIED,
    TooManyConsumersError: Status.RESOURCE_EXHAUSTED,
}


class Shown:
    """What all doors show: one board, one store, one set of serialised events, one count of streams."""

    def __init__(
        self,
        *,
        board: Board,
        ledger: Ledger,
        catalog: Callable[[], Catalog],
        facts: NodeFacts,
        pace: Pace,
        sources: Sources,
    ) -> None:
        self.board = board
        self.ledger = ledger
        self.catalog = catalog
        self.facts = facts
        self.node = messages.node_identity(facts)
        self.frames = Frames(facts)
        self.pace = pace
        self.sources = sources
        self.streams = 0


class FaultService:
    """The service behind one door; ``identify`` tells who calls."""

    def __init__(self, shown: Shown, identify: Identify) -> None:
        self._shown = shown
        self._identify = identify

    async def watch(self, request: pb.WatchRequest, context: grpc.aio.ServicerContext) -> None:
        caller = self._reader(context)
        shown = self._shown
        if shown.streams >= MAX_STREAMS:
            raise Refusal(Status.RESOURCE_EXHAUSTED, f"{MAX_STREAMS} streams are open; close some and retry")
        shown.streams += 1
        try:
            subscription = Subscription(
                board=shown.board,
                ledger=shown.ledger,
                frames=shown.frames,
                request=request,
                position=self._position(request, caller),
                pace=shown.pace,
                sources=shown.sources,
            )
            async with aclosing(subscription.responses()) as responses:
                async for response in responses:
                    await context.write(response)
        finally:
            shown.streams -= 1

    async def ack(self, request: pb.AckRequest, context: grpc.aio.ServicerContext) -> pb.AckResponse:
        caller = self._reader(context)
        name = _consumer_name(request.consumer)
        try:
            kept = await self._shown.ledger.ack(
                name, caller.identity, messages.core_store_id(request.store_id), request.seq
            )
        except ConsumerError as error:
            raise Refusal(_CONSUMER_ERRORS[type(error)], str(error)) from error
        current = self._current()
        return pb.AckResponse(
            node=self._shown.node, store_id=messages.store_id(current.store_id), seq=kept.seq
        )

    async def list_conditions(
        self, request: pb.ListConditionsRequest, context: grpc.aio.ServicerContext
    ) -> pb.ListConditionsResponse:
        self._reader(context)
        current = self._current()
        minimum = level_of(request.minimum_level, "minimum_level")
        scene = messages.Scene(current, device_names(request.devices, "devices"))
        return pb.ListConditionsResponse(
            node=self._shown.node,
            store_id=messages.store_id(current.store_id),
            seq=current.seq,
            conditions=scene.conditions(minimum),
            promotions=scene.promotions(minimum),
            holds=scene.holds(),
            resets=messages_of_actions.resets(scene),
        )

    async def list_devices(
        self, request: pb.ListDevicesRequest, context: grpc.aio.ServicerContext
    ) -> pb.ListDevicesResponse:
        self._reader(context)
        current = self._current()
        scene = messages.Scene(current, device_names(request.devices, "devices"))
        return pb.ListDevicesResponse(
            node=self._shown.node,
            store_id=messages.store_id(current.store_id),
            seq=current.seq,
            devices=scene.devices(),
        )

    async def list_events(
        self, request: pb.ListEventsRequest, context: grpc.aio.ServicerContext
    ) -> pb.ListEventsResponse:
        self._reader(context)
        current = self._current()
        page = await history.page(
            self._shown.board,
            self._shown.ledger,
            after_seq=request.after_seq,
            limit=history.limit_of(request.limit),
            newest=request.newest,
            wanted=Filter(request.filter),
        )
        return pb.ListEventsResponse(
            node=self._shown.node,
            store_id=messages.store_id(current.store_id),
            events=[messages.event(each) for each in page.events],
            next_after_seq=page.next_after_seq,
            more=page.more,
            oldest_seq=self._shown.ledger.oldest_seq,
            last_seq=current.seq,
        )

    async def get_node(
        self, _request: pb.GetNodeRequest, context: grpc.aio.ServicerContext
    ) -> pb.GetNodeResponse:
        self._reader(context)
        current = self._current()
        scene = messages.Scene(current)
        node = next((each for each in current.view.devices if each.name == NODE), None)
        return pb.GetNodeResponse(
            node=self._shown.node,
            store_id=messages.store_id(current.store_id),
            last_seq=current.seq,
            oldest_seq=self._shown.ledger.oldest_seq,
            durable=current.durable,
            device=None if node is None else scene.device(node),
            sources=scene.sources(self._shown.sources(current.view)),
            version=self._shown.facts.version,
            started_at=messages.timestamp(self._shown.facts.started_wall_ns),
            catalog_digest=current.view.digest,
        )

    async def explain_code(
        self, request: pb.ExplainCodeRequest, context: grpc.aio.ServicerContext
    ) -> pb.ExplainCodeResponse:
        self._reader(context)
        if not 0 < len(request.codes) <= MAX_CODES:
            raise Refusal(Status.INVALID_ARGUMENT, f"codes: 1 to {MAX_CODES}, not {len(request.codes)}")
        lookup = Lookup(self._shown.catalog())
        return pb.ExplainCodeResponse(
            node=self._shown.node,
            catalog_digest=lookup.catalog.digest,
            explanations=[explain.explanation(lookup, code) for code in request.codes],
        )

    async def why_device(
        self, request: pb.WhyDeviceRequest, context: grpc.aio.ServicerContext
    ) -> pb.WhyDeviceResponse:
        self._reader(context)
        current = self._current()
        device = known_device(current, request.device)
        scene = messages.Scene(current)
        events = await history.latest(self._shown.board, self._shown.ledger)
        return pb.WhyDeviceResponse(
            node=self._shown.node,
            store_id=messages.store_id(current.store_id),
            seq=current.seq,
            device=scene.device(device),
            contributions=explain.contributions(scene, device, Lookup(self._shown.catalog()), events),
        )

    def _reader(self, context: grpc.aio.ServicerContext) -> Caller:
        caller = self._identify(context)
        if caller.role is Role.NONE:
            raise Refusal(Status.PERMISSION_DENIED, f"{caller.who} may not read: {caller.advice}")
        return caller

    def _current(self) -> Publication:
        current = self._shown.board.current
        if current.store_id.uuid == "":
            raise Refusal(Status.UNAVAILABLE, "the daemon is still starting; retry")
        return current

    def _position(self, request: pb.WatchRequest, caller: Caller) -> Position | None:
        """What the request says, else what the consumer has acknowledged, else nothing."""
        if request.consumer:
            _consumer_name(request.consumer)
        if request.HasField("store_id"):
            return Position(store_id=messages.core_store_id(request.store_id), seq=request.after_seq)
        if request.after_seq:
            raise Refusal(Status.INVALID_ARGUMENT, "after_seq: a number needs the store_id it belongs to")
        if not request.consumer:
            return None
        kept = self._shown.ledger.consumer(request.consumer)
        if kept is None:
            return None
        if kept.owner != caller.identity:
            raise Refusal(Status.PERMISSION_DENIED, f"consumer {kept.name!r} belongs to another identity")
        return Position(store_id=self._current().store_id, seq=kept.seq)


def _consumer_name(name: str) -> str:
    if not 0 < len(name) <= MAX_CONSUMER_LENGTH or not name.isprintable():
        raise Refusal(
            Status.INVALID_ARGUMENT, f"consumer: 1 to {MAX_CONSUMER_LENGTH} printable characters are needed"
        )
    return name
