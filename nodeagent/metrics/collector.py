"""Prometheus metrics: built again at each scrape from the published state, so that they can never disagree.

Scraped from a thread, so that it answers while the loop is busy: it reads only values that are
replaced whole, and counters that the loop alone writes. It counts events; it judges nothing.
"""

import asyncio
from collections.abc import Iterator, Sequence

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from nodeagent.api.faults.history import follow
from nodeagent.api.messages import NodeFacts
from nodeagent.core.model import EventKind
from nodeagent.metrics.certificates import CertificateTimes
from nodeagent.metrics.daemon import HealthSource, daemon_metrics, public_metrics, source_metrics
from nodeagent.metrics.devices import (
    ActionCounts,
    actions_in_progress,
    device_metrics,
    open_metrics,
    verdicts_since,
)
from nodeagent.metrics.jobs import JobCounts, jobs_by_stage, slow_jobs
from nodeagent.metrics.telemetry import telemetry
from nodeagent.metrics.workers import worker_metrics
from nodeagent.store.consumers import Consumer
from nodeagent.store.event_feed import EventFeed
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import Publication, StoredEvent

CONSUMERS_EVERY_S = 5.0


class NodeMetrics(Collector):
    """``run`` keeps the counters; ``collect`` is called at each scrape, from any thread."""

    def __init__(
        self,
        *,
        feed: EventFeed,
        ledger: Ledger,
        facts: NodeFacts,
        health: HealthSource,
        certificates: CertificateTimes | None = None,
        all_states: bool = False,
    ) -> None:
        self._feed = feed
        self._ledger = ledger
        self._facts = facts
        self._health = health
        self._certificates = certificates or CertificateTimes(None)
        self._all_states = all_states
        self._events = dict.fromkeys(EventKind, 0)
        self._unknown: dict[str, int] = {}
        self._actions = ActionCounts()
        self._jobs = JobCounts()
        self._consumers: Sequence[Consumer] = ()

    async def run(self, after_seq: int) -> None:
        """Counts the events after a number, until cancelled."""
        async with asyncio.TaskGroup() as both:
            both.create_task(self._count(after_seq))
            both.create_task(self._watch_consumers())

    async def _count(self, after_seq: int) -> None:
        async for events in follow(self._feed, self._ledger, after_seq):
            self.count(events)

    def count(self, events: Sequence[StoredEvent]) -> None:
        for stored in events:
            event = stored.event
            self._events[event.kind] += 1
            self._actions.count(event)
            self._jobs.count(event)
            if event.unknown and event.kind is EventKind.RAISED:
                self._unknown[event.source] = self._unknown.get(event.source, 0) + 1

    async def _watch_consumers(self) -> None:
        while True:
            self._consumers = self._ledger.consumers()
            await asyncio.sleep(CONSUMERS_EVERY_S)

    def collect(self) -> Iterator[Metric]:
        publication = self._feed.current
        health = self._health()
        own = [
            *self._about(publication),
            *device_metrics(publication.view, all_states=self._all_states),
            verdicts_since(publication.view, publication.wall_offset_ns),
            *open_metrics(publication.view, publication.wall_offset_ns),
            *actions_in_progress(publication.view, publication.wall_offset_ns),
            self._actions.family(),
            *jobs_by_stage(publication.view),
            *slow_jobs(publication.view),
            *self._jobs.families(),
            *self._stream(publication),
            *daemon_metrics(health),
            *public_metrics(health),
            *source_metrics(publication.view, health),
            *worker_metrics(health),
            *self._certificates.families(),
        ]
        yield from own
        yield from telemetry(health.sources, {family.name for family in own})

    @property
    def is_ready(self) -> bool:
        """Whether the daemon has published a state: from then on it answers."""
        return self._feed.current.store_id.uuid != ""

    def _about(self, publication: Publication) -> Iterator[Metric]:
        facts = self._facts
        yield InfoMetricFamily(
            "nodeagent_build",
            "The daemon and the node it speaks for.",
            value={"version": facts.version, "node": facts.node_name, "node_id": facts.node_id},
        )
        yield InfoMetricFamily(
            "nodeagent_catalog",
            "Digest of the tables and settings in force.",
            value={"digest": publication.view.digest},
        )
        yield InfoMetricFamily(
            "nodeagent_store",
            "The line of event numbers.",
            value={"uuid": publication.store_id.uuid, "epoch": str(publication.store_id.epoch)},
        )
        yield GaugeMetricFamily(
            "nodeagent_start_time_seconds", "When the daemon started, unix time.", facts.started_wall_ns / 1e9
        )
        yield GaugeMetricFamily(
            "nodeagent_store_durable",
            "1 while committed events are on the disk, 0 while only in memory.",
            float(publication.durable),
        )

    def _stream(self, publication: Publication) -> Iterator[Metric]:
        events = CounterMetricFamily("nodeagent_events", "Events since start.", labels=["kind"])
        for kind, count in self._events.items():
            events.add_metric([kind], count)
        yield events
        unknown = CounterMetricFamily(
            "nodeagent_unknown_codes",
            "Faults raised since start by codes that no table names.",
            labels=["source"],
        )
        for source, count in tuple(self._unknown.items()):
            unknown.add_metric([source], count)
        yield unknown
        yield GaugeMetricFamily("nodeagent_last_event_number", "Number of the last event.", publication.seq)
        lag = GaugeMetricFamily(
            "nodeagent_consumer_lag_events",
            "Events that a named consumer has not acknowledged.",
            labels=["consumer"],
        )
        for consumer in self._consumers:
            lag.add_metric([consumer.name], max(0, publication.seq - consumer.seq))
        yield lag
