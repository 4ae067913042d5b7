"""The daemon, part by part, in the order things happen: recover, assemble, serve, run, stop.

It only wires the parts. Each part explains itself in its own file.
"""

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from nodeagent import __version__, journal
from nodeagent.api.access.sockets import OutletError, open_or_keep_trying
from nodeagent.api.access.tls import ServerCertificateFiles
from nodeagent.api.control.audit import AuditLog, AuditReader
from nodeagent.api.control.context import Context
from nodeagent.api.control.senders import Senders
from nodeagent.api.control.service import served
from nodeagent.api.control.tables import Tables
from nodeagent.api.faults.service import Readings
from nodeagent.api.jobs.listener import JobListener
from nodeagent.api.messages import NodeFacts
from nodeagent.api.server import GrpcServer
from nodeagent.config.config import Config
from nodeagent.config.last import Chosen
from nodeagent.config.load import where_set
from nodeagent.config.sections import GrpcConfig
from nodeagent.core.model import View
from nodeagent.daemon import systemd
from nodeagent.daemon.catalogs import NoTables
from nodeagent.daemon.pump import RestartNeeded
from nodeagent.daemon.recovery import RecoveredDaemon, recover
from nodeagent.daemon.reload import Reloading
from nodeagent.daemon.resets import launch
from nodeagent.daemon.resets.actuator import Actuator
from nodeagent.daemon.sources import configured
from nodeagent.daemon.sources.orders import Quiescence, Rebaselining
from nodeagent.daemon.sources.supervisor import SourceSupervisor
from nodeagent.metrics.certificates import CertificateTimes
from nodeagent.metrics.collector import NodeMetrics
from nodeagent.metrics.http import MetricsServer
from nodeagent.store.errors import StoreInUseError
from nodeagent.store.event_feed import EventFeed
from nodeagent.store.ledger import Ledger
from nodeagent.system.memory import give_back
from nodeagent.system.streams import runs_under_journal
from nodeagent.vendors import DRIVERS

log = logging.getLogger(__name__)

EXIT_FAILED = 1
EXIT_CONFIG = 78
"""sysexits.h EX_CONFIG: what is configured cannot work. systemd tries again, and takes a mended file."""


def run(chosen: Chosen, config_path: Path | None, stream: bool) -> int:
    """Serve until a signal stops it; the answer is the exit status. ``stream`` prints events on stdout."""
    status = os.EX_OK
    for line in chosen.refused.splitlines():
        log.critical("configuration refused: %s", line)
    if chosen.refused:
        log.critical("running with the last accepted configuration; correct the file, then reload")
    for warning in chosen.config.without_effect():
        log.warning("%s", warning)
    daemon = Daemon(chosen, config_path, stream)
    try:
        asyncio.run(daemon.serve())
    except* (NoTables, OutletError) as refused:
        status = _report(refused, EXIT_CONFIG)
    except* (StoreInUseError, RestartNeeded) as refused:
        status = _report(refused, EXIT_FAILED)
    return status


class Daemon:
    """One life of the daemon, from the store it finds to the store it leaves."""

    def __init__(self, chosen: Chosen, config_path: Path | None, stream: bool) -> None:
        self._config = chosen.config
        self._refused = chosen.refused
        self._config_path = config_path
        self._stream = stream
        self._stop = asyncio.Event()
        self._reload = asyncio.Event()

    async def serve(self) -> None:
        # Nothing of what is built up to the start is garbage; looking for it takes a tenth of a long replay.
        gc.disable()
        async with contextlib.AsyncExitStack() as resources:
            recovered = await recover(self._config, self._refused, resources)
            parts = assemble(self._config, self._config_path, recovered)
            await parts.grpc.start()
            resources.push_async_callback(parts.grpc.stop)
            if self._config.jobs.enabled:
                parts.job_listener.open()
                resources.push_async_callback(parts.job_listener.close)
            await self._serve_metrics(parts.metrics, resources)
            await self._run(recovered, parts)
            await recovered.pump.compact()

    async def _run(self, recovered: RecoveredDaemon, parts: "Parts") -> None:
        """Until a signal stops it; what the sources have read by then is committed."""
        feed, pump = recovered.feed, recovered.pump
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(pump.run())
            for source in parts.sources:
                tasks.create_task(source.run())
            outlets = [
                tasks.create_task(parts.metrics.run(recovered.last_seq)),
                tasks.create_task(self._write_journal(feed, recovered.ledger, recovered.last_seq)),
                tasks.create_task(_report_readiness(feed, parts.grpc, _required(self._config))),
                tasks.create_task(parts.reloading.on(self._reload)),
                tasks.create_task(parts.actuator.run()),
                tasks.create_task(parts.quiescence.run()),
                tasks.create_task(parts.rebaselining.run()),
                tasks.create_task(parts.job_listener.run()),
            ]
            if not self._refused:
                outlets.append(tasks.create_task(parts.reloading.keep(self._config)))
            self._listen_to_signals()
            # What is here now stays: looking it through again for garbage would hold up events by 10 ms.
            gc.freeze()
            gc.enable()
            systemd.ready()
            give_back()
            log.info("nodeagent %s serves on %s", __version__, self._config.agent.socket)
            await self._stop.wait()
            systemd.stopping()
            await asyncio.gather(parts.job_listener.close(), *(source.stop() for source in parts.sources))
            pump.finish()
            for outlet in outlets:
                outlet.cancel()

    def _listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._stop.set)
        loop.add_signal_handler(signal.SIGINT, self._stop.set)
        loop.add_signal_handler(signal.SIGHUP, self._reload.set)

    async def _write_journal(self, feed: EventFeed, ledger: Ledger, after_seq: int) -> None:
        if self._stream:
            await journal.write_events(feed, ledger, after_seq, journal.line_writer(sys.stdout))
        elif runs_under_journal(os.environ):
            await journal.write_events(feed, ledger, after_seq, journal.journal_writer())

    async def _serve_metrics(self, metrics: NodeMetrics, resources: contextlib.AsyncExitStack) -> None:
        """A port that is taken costs the metrics, not the daemon: better not scraped than blind."""
        if not self._config.metrics.listen:
            return
        server = MetricsServer(self._config.metrics.listen, metrics, lambda: metrics.is_ready)

        async def open_listener() -> None:
            server.start()

        resources.callback(server.stop)
        trying = await open_or_keep_trying(open_listener, "no metrics")
        if trying is not None:
            resources.callback(trying.cancel)


async def _report_readiness(feed: EventFeed, grpc: GrpcServer, required: frozenset[str]) -> None:
    """Ready while every required source observes: what a load balancer or a scheduler's probe asks."""
    while True:
        publication = feed.current
        grpc.set_serving(_observes(publication.view, required))
        await feed.wait_change(publication)


def _observes(view: View, required: frozenset[str]) -> bool:
    """A source that was never heard is in no view, and observes nothing yet."""
    observing = {source.name for source in view.sources if not source.device_id and source.observes}
    return required <= observing


def _required(config: Config) -> frozenset[str]:
    sections = ((name, config.drivers[name]) for name in DRIVERS)
    return frozenset(name for name, section in sections if section.enabled and section.required)


def _report(refused: BaseExceptionGroup[BaseException], status: int) -> int:
    for error in refused.exceptions:
        for line in str(error).splitlines():
            log.critical("%s", line)
    return status


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    sources: list[SourceSupervisor]
    actuator: Actuator
    quiescence: Quiescence
    rebaselining: Rebaselining
    job_listener: JobListener
    reloading: Reloading
    grpc: GrpcServer
    metrics: NodeMetrics


def assemble(config: Config, config_path: Path | None, recovered: RecoveredDaemon) -> Parts:
    """``config_path`` as in ``Reloading``."""
    ledger, clock, catalogs = recovered.ledger, recovered.clock, recovered.catalogs
    feed, pump = recovered.feed, recovered.pump
    sources = configured.supervisors(
        config, catalogs.current, clock, recovered.cursors, pump.submit, feed.current.view
    )
    by_name = {source.name: source for source in sources}
    actuator = Actuator(config, clock, feed, ledger, pump.ask, by_name, config_path)
    actuator.adopt(feed.current.view)
    pump.act = actuator.act
    quiescence = Quiescence(feed, configured.of_vendors(config, sources))
    quiescence.begin()
    senders = Senders(config.public)
    readings = partial(configured.readings, sources)
    job_listener = JobListener(
        path=Path(config.jobs_socket),
        feed=feed,
        ask=pump.ask,
        readings=readings,
        audit=AuditLog(ledger),
        config=config.jobs,
        version=__version__,
        consumer=ledger.consumer,
        resets=lambda: catalogs.current.settings.reset,
    )

    def on_config(fresh: Config) -> None:
        actuator.reload(fresh)
        senders.config = fresh.public
        job_listener.reload(fresh.jobs)

    reloading = Reloading(config, config_path, catalogs, pump, feed, sources, on_config)
    facts = NodeFacts(
        node_id=systemd.machine_id(),
        node_name=config.agent.name(),
        boot_id=clock.boot_id,
        version=__version__,
        started_wall_ns=clock.wall_ns(),
    )
    return Parts(
        sources=sources,
        actuator=actuator,
        quiescence=quiescence,
        rebaselining=Rebaselining(feed, sources),
        job_listener=job_listener,
        reloading=reloading,
        grpc=_grpc(config, config_path, recovered, facts, reloading, senders, job_listener, readings),
        metrics=NodeMetrics(
            feed=feed,
            ledger=ledger,
            facts=facts,
            health=lambda: configured.health(pump, ledger, sources, recovered.volatile, senders),
            certificates=_certificate_times(config.grpc),
            all_states=config.metrics.states == "all",
        ),
    )


def _certificate_times(grpc: GrpcConfig) -> CertificateTimes | None:
    return CertificateTimes(ServerCertificateFiles.configured(grpc)) if grpc.listen else None


def _grpc(
    config: Config,
    config_path: Path | None,
    recovered: RecoveredDaemon,
    facts: NodeFacts,
    reloading: Reloading,
    senders: Senders,
    job_listener: JobListener,
    readings: Readings,
) -> GrpcServer:
    catalogs, pump = recovered.catalogs, recovered.pump
    context = Context(
        feed=recovered.feed,
        catalog=lambda: catalogs.current,
        facts=facts,
        ask=pump.ask,
        dry_run_reset=pump.dry_run_reset,
        cannot_reset=lambda: launch.why_it_cannot(Path(config.reset.run_dir)),
        configured_in=lambda setting: where_set(setting, config_path, os.environ),
    )
    return GrpcServer(
        feed=recovered.feed,
        ledger=recovered.ledger,
        catalog=lambda: catalogs.current,
        facts=facts,
        config=config,
        served=served(
            context, Tables(facts, reloading.reload), AuditReader(recovered.ledger, facts), senders
        ),
        limits=job_listener.limits_of,
        readings=readings,
    )
