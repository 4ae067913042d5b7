"""The sources of this node: one supervisor for each enabled driver, as the configuration describes them.

A line of the kernel log may show that a source lost events. A library that learns only by events then
differs from its driver, so the worker of that source is replaced at once by a new process, which asks for
everything. Lines that user space wrote replace nothing, nor do lines from before this start: the workers
began after them.
"""

import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from nodeagent import __version__
from nodeagent.api.control.senders import Senders
from nodeagent.config.config import Config
from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.model import KERNEL_LOG, ExpectedSource, Input, Loss, Signal, SourceLost, Started, View
from nodeagent.daemon.clock import Clock
from nodeagent.daemon.pump import QUEUE_DELIVERIES, Delivery, Pump
from nodeagent.daemon.resets.launch import runs_as_unit
from nodeagent.daemon.sources.baselines import baselines_of, open_codes_of
from nodeagent.daemon.sources.inventory import devices_of
from nodeagent.daemon.sources.supervisor import SourceSupervisor
from nodeagent.daemon.workers.worker import WorkerSpec
from nodeagent.metrics.daemon import Health
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import Cursor
from nodeagent.vendors import DRIVERS, ChipsConfig, DriverConfig, NvidiaConfig, VendorConfig
from nodeagent.wire import Device
from nodeagent.worker.hosted import SOCKET

AFTER_REQUIRED_S: Final = 0.5
"""So much later start sources that are not required: they would hold up those that readiness waits for."""

HURRIED_CALL_S: Final = 3.0


def supervisors(
    config: Config,
    catalog: Catalog,
    clock: Clock,
    cursors: Mapping[str, Cursor],
    deliver: Callable[[Delivery], Awaitable[None]],
    view: View,
    hurry: bool = False,
) -> list[SourceSupervisor]:
    """``view`` is what is known of earlier lives. In a ``hurry`` all begin at once, no call is waited for
    long, and they end without grace.
    """
    specs: Iterable[WorkerSpec] = (
        replace(
            spec_of(name, config.drivers[name], catalog, clock, cursors.get(name), devices_of(view, name)),
            exclude=config.agent.exclude_devices,
            baselines=baselines_of(view, name),
            open_codes=open_codes_of(view, name),
        )
        for name in DRIVERS
        if config.drivers[name].enabled
    )
    if hurry:
        specs = map(_hurried, specs)
    made: dict[str, SourceSupervisor] = {}

    async def deliver_and_renew(delivery: Delivery) -> None:
        await deliver(delivery)
        for source, why in reported(delivery.inputs):
            if source in made:
                made[source].renew(f"the kernel log says that events were lost: {why}")

    for spec in specs:
        made[spec.source] = SourceSupervisor(spec, deliver_and_renew, clock.rule_of_boottime)
    return list(made.values())


def _hurried(spec: WorkerSpec) -> WorkerSpec:
    return replace(
        spec,
        start_delay_s=0.0,
        call_deadline_s=min(spec.call_deadline_s, HURRIED_CALL_S),
        stall_deadline_s=0.0,
        hang_up_limit_s=0.2,
        terminate_grace_s=0.2,
    )


def started(config: Config, clock: Clock) -> Started:
    """The first input of a life, with the sources that are about to be read."""
    sources = tuple(
        ExpectedSource(
            name=name,
            needed=traits.lists is not None or config.drivers[name].required,
            lists=traits.lists is not None,
        )
        for name, traits in DRIVERS.items()
        if config.drivers[name].enabled
    )
    return Started(boot_id=clock.boot_id, version=__version__, doubt=clock.doubt, sources=sources)


def expected_chips(section: DriverConfig) -> int | None:
    """As in ``ExpectedChips``."""
    return section.expected_chips if isinstance(section, ChipsConfig) else None


def switched_off(config: Config, view: View) -> tuple[SourceLost, ...]:
    """The loss of sources that were read once and have no driver any more: nothing else reports on them."""
    read = {source.name for source in view.sources}
    return tuple(
        SourceLost(source=name, reason=f"drivers.{name}.enabled is false", how=Loss.RELEASED)
        for name in DRIVERS
        if name in read and not config.drivers[name].enabled
    )


def of_vendors(config: Config, workers: Iterable[SourceSupervisor]) -> list[SourceSupervisor]:
    """Those that have a vendor's library open."""
    return [worker for worker in workers if isinstance(config.drivers[worker.name], VendorConfig)]


def spec_of(
    name: str,
    section: DriverConfig,
    catalog: Catalog,
    clock: Clock,
    cursor: Cursor | None,
    known: tuple[Device, ...],
) -> WorkerSpec:
    """``section`` is the driver's, ``known`` are its parts of earlier lives."""
    traits = DRIVERS[name]
    return WorkerSpec(
        source=name,
        boot_id=clock.boot_id,
        config=section.for_driver(),
        patterns=catalog.patterns,
        threshold=catalog.threshold,
        counter=catalog.counter,
        cursor=cursor,
        known=known,
        expected_chips=expected_chips(section),
        required=section.required,
        poll_interval_s=section.poll_interval_ns / 1e9,
        call_deadline_s=section.call_deadline_ns / 1e9,
        stall_deadline_s=section.stall_deadline_ns / 1e9 if isinstance(section, NvidiaConfig) else 0.0,
        hello_deadline_s=traits.hello_deadline_s,
        absent_retry_s=traits.absent_retry_s,
        start_delay_s=0.0 if section.required else AFTER_REQUIRED_S,
        host=SOCKET if traits.has_unit and runs_as_unit(os.environ) else None,
    )


def readings(workers: Iterable[SourceSupervisor]) -> dict[str, dict[str, float]]:
    """The last of each observed device, by its name; of two sources of one reading the first counts."""
    found: dict[str, dict[str, float]] = {}
    for worker in workers:
        for device, values in worker.health().readings.items():
            found[device] = {**values, **found.get(device, {})}
    return found


def health(
    pump: Pump, ledger: Ledger, workers: list[SourceSupervisor], volatile: bool, senders: Senders
) -> Health:
    """How the daemon does, for the metrics; reads attributes only, from any thread."""
    statistics = pump.statistics
    dropped_events, dropped_inputs = ledger.dropped
    return Health(
        queue_depth=pump.queued,
        queue_capacity=QUEUE_DELIVERIES,
        inputs=statistics.inputs,
        commits=statistics.commits,
        commit_total_s=statistics.commit_total_s,
        commit_last_s=statistics.commit_last_s,
        degraded=ledger.degraded,
        volatile=volatile,
        dropped_events=dropped_events,
        dropped_inputs=dropped_inputs,
        sources=tuple(worker.health() for worker in workers),
        public_messages=dict(senders.messages),
        public_faults=dict(senders.faults),
    )


EVENTS_LOST: Final = {
    traits.events_lost_code: source for source, traits in DRIVERS.items() if traits.events_lost_code
}
"""Code of a line of the kernel log -> the source that has lost events by it."""


def reported(inputs: Iterable[Input]) -> Iterator[tuple[str, str]]:
    """The name of each, and the code of the line that says so."""
    for given in inputs:
        if not isinstance(given, Signal) or given.source != KERNEL_LOG:
            continue
        if given.trusted and not given.backdated and (source := EVENTS_LOST.get(given.code)):
            yield source, given.code
