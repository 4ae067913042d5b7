"""FaultService, but for consumers (``consumers.py``): reads what is published and what is stored."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from itertools import starmap

import grpc

from nodeagent.api import interface, messages
from nodeagent.api.access.credentials import Caller, Identify, reader
from nodeagent.api.access.quota import FairQueue, Quota
from nodeagent.api.base_units import in_base_units
from nodeagent.api.faults import explain
from nodeagent.api.faults.consumers import checked_name
from nodeagent.api.faults.filters import Filter, device_names, level_of
from nodeagent.api.faults.frames import Frames
from nodeagent.api.faults.history import EventHistory
from nodeagent.api.faults.list_events import Search, limit_of, times_of
from nodeagent.api.faults.watch import StreamPace, StreamPosition, Subscription
from nodeagent.api.messages import NodeFacts, jobs, resets
from nodeagent.api.refusal import Refusal, Status
from nodeagent.api.request_fields import known_device
from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.catalog.lookup import Lookup
from nodeagent.core.model import NODE
from nodeagent.job.lines import LearntLimits
from nodeagent.messages import mapping
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.store.event_feed import EventFeed
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import Publication

LOOKED_AT = 1000
"""So many of the newest events are looked through for those about a device's condition."""

MAX_CODES = 100

Readings = Callable[[], Mapping[str, Mapping[str, float]]]


class ServedState:
    """What the services of all sockets share: one event feed, one store, one cache of serialised events, one
    queue.
    """

    def __init__(
        self,
        *,
        feed: EventFeed,
        ledger: Ledger,
        catalog: Callable[[], Catalog],
        facts: NodeFacts,
        pace: StreamPace,
        capabilities: Sequence[pb.Capability],
        limits: Callable[[str], LearntLimits] | None = None,
        readings: Readings = dict,
    ) -> None:
        """``limits``: what the supervisor of a job has learnt, by its name. ``readings``: the last of each
        observed device, by its name.
        """
        self.feed = feed
        self.ledger = ledger
        self.catalog = catalog
        self.facts = facts
        self.node = messages.node_identity(facts)
        self.frames = Frames(facts)
        self.history = EventHistory(feed, ledger)
        self.turns = FairQueue()
        self.pace = pace
        self.capabilities = capabilities
        self.limits = limits
        self.readings = readings


class FaultService:
    """The service behind one socket; ``identify`` gives the caller."""

    def __init__(self, shown: ServedState, identify: Identify, answers: Quota) -> None:
        self._shown = shown
        self._answers = answers
        self._identify = identify

    async def watch(self, request: pb.WatchRequest, context: grpc.aio.ServicerContext) -> None:
        caller = reader(self._identify, context)
        shown = self._shown
        subscription = Subscription(
            feed=shown.feed,
            history=shown.history,
            turns=shown.turns,
            frames=shown.frames,
            answers=self._answers,
            caller=caller,
            request=request,
            position=self._position(request, caller),
            pace=shown.pace,
        )
        async with aclosing(subscription.responses()) as responses:
            async for response in responses:
                await context.write(response)

    async def list_conditions(
        self, request: pb.ListConditionsRequest, context: grpc.aio.ServicerContext
    ) -> pb.ListConditionsResponse:
        reader(self._identify, context)
        current = self._current()
        minimum = level_of(request.minimum_level, "minimum_level")
        published = messages.Published(current, device_names(request.devices, "devices"))
        return pb.ListConditionsResponse(
            node=self._shown.node,
            store_id=messages.store_id(current.store_id),
            seq=current.seq,
            conditions=published.conditions(minimum),
            promotions=published.promotions(minimum),
            holds=published.holds(),
            resets=resets(published),
        )

    async def list_devices(
        self, request: pb.ListDevicesRequest, context: grpc.aio.ServicerContext
    ) -> pb.ListDevicesResponse:
        reader(self._identify, context)
        current = self._current()
        published = messages.Published(current, device_names(request.devices, "devices"))
        return pb.ListDevicesResponse(
            node=self._shown.node,
            store_id=messages.store_id(current.store_id),
            seq=current.seq,
            devices=published.devices(),
        )

    async def list_jobs(
        self, _request: pb.ListJobsRequest, context: grpc.aio.ServicerContext
    ) -> pb.ListJobsResponse:
        reader(self._identify, context)
        current = self._current()
        return pb.ListJobsResponse(
            node=self._shown.node,
            store_id=messages.store_id(current.store_id),
            seq=current.seq,
            jobs=jobs(messages.Published(current), self._shown.limits),
        )

    async def list_readings(
        self, request: pb.ListReadingsRequest, context: grpc.aio.ServicerContext
    ) -> pb.ListReadingsResponse:
        reader(self._identify, context)
        published = messages.Published(self._current(), device_names(request.devices, "devices"))
        values = self._shown.readings()
        return pb.ListReadingsResponse(
            node=self._shown.node,
            readings=[
                pb.DeviceReadings(
                    device=each.name,
                    device_id=each.id,
                    values=dict(starmap(in_base_units, values[each.name].items())),
                )
                for each in published.devices()
                if each.name in values
            ],
        )

    async def list_events(self, request: pb.ListEventsRequest, context: grpc.aio.ServicerContext) -> bytes:
        caller = reader(self._identify, context)
        current = self._current()
        search = Search(
            history=self._shown.history,
            frames=self._shown.frames,
            turns=self._shown.turns,
            identity=caller.counted_as,
            wanted=Filter(request.filter),
            limit=limit_of(request.limit),
            after_seq=request.after_seq,
            times=times_of(request),
        )
        found = await (search.newest() if request.newest else search.oldest())
        response = pb.ListEventsResponse(
            node=self._shown.node,
            store_id=messages.store_id(current.store_id),
            next_after_seq=found.next_after_seq,
            more=found.more,
            oldest_seq=self._shown.history.oldest_seq,
            last_seq=current.seq,
        )
        return self._shown.frames.listed(response, found.events)

    async def get_node(
        self, _request: pb.GetNodeRequest, context: grpc.aio.ServicerContext
    ) -> pb.GetNodeResponse:
        caller = reader(self._identify, context)
        current = self._current()
        published = messages.Published(current)
        node = next((each for each in current.view.devices if each.name == NODE), None)
        return pb.GetNodeResponse(
            node=self._shown.node,
            store_id=messages.store_id(current.store_id),
            last_seq=current.seq,
            oldest_seq=self._shown.ledger.oldest_seq,
            durable=current.durable,
            device=None if node is None else published.device(node),
            sources=published.sources(),
            version=self._shown.facts.version,
            started_at=mapping.timestamp(self._shown.facts.started_wall_ns),
            catalog_digest=current.view.digest,
            api_version=interface.version(),
            capabilities=self._shown.capabilities,
            caller=interface.caller(caller),
        )

    async def explain_code(
        self, request: pb.ExplainCodeRequest, context: grpc.aio.ServicerContext
    ) -> pb.ExplainCodeResponse:
        reader(self._identify, context)
        if not 0 < len(request.codes) <= MAX_CODES:
            raise Refusal(Status.INVALID_ARGUMENT, f"codes: 1 to {MAX_CODES}, not {len(request.codes)}")
        lookup = Lookup(self._shown.catalog())
        return pb.ExplainCodeResponse(
            node=self._shown.node,
            catalog_digest=lookup.catalog.digest,
            explanations=explain.explanations(lookup, request.codes),
        )

    async def why_device(
        self, request: pb.WhyDeviceRequest, context: grpc.aio.ServicerContext
    ) -> pb.WhyDeviceResponse:
        caller = reader(self._identify, context)
        current = self._current()
        device = known_device(current, request.device)
        published = messages.Published(current)
        async with self._shown.turns.turn(caller.counted_as):
            events = await self._shown.history.newest(LOOKED_AT)
        return pb.WhyDeviceResponse(
            node=self._shown.node,
            store_id=messages.store_id(current.store_id),
            seq=current.seq,
            device=published.device(device),
            contributions=explain.contributions(published, device, Lookup(self._shown.catalog()), events),
        )

    def _current(self) -> Publication:
        current = self._shown.feed.current
        if current.store_id.uuid == "":
            raise Refusal(Status.UNAVAILABLE, "the daemon is still starting; retry")
        return current

    def _position(self, request: pb.WatchRequest, caller: Caller) -> StreamPosition | None:
        """What the request says, else what the consumer has acknowledged, else nothing."""
        kept = self._shown.ledger.consumer(checked_name(request.consumer)) if request.consumer else None
        if kept is not None and not kept.belongs_to(caller.identity):
            raise Refusal(Status.PERMISSION_DENIED, f"consumer {kept.name!r} belongs to {kept.owner}")
        if request.HasField("store_id"):
            return StreamPosition(store_id=messages.core_store_id(request.store_id), seq=request.after_seq)
        if request.after_seq:
            raise Refusal(Status.INVALID_ARGUMENT, "after_seq: a number needs the store_id it belongs to")
        if kept is None:
            return None
        return StreamPosition(store_id=self._current().store_id, seq=kept.seq)
