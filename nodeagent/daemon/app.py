"""The daemon, part by part, in the order things happen: recover, judge, serve, stop.

It only wires. What a part does, and why, is in its own file.
"""

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sys
from pathlib import Path

from nodeagent import __version__, journal
from nodeagent.api.access.addresses import open_or_keep_trying
from nodeagent.api.access.sockets import OutletError
from nodeagent.api.control.audit import Audit
from nodeagent.api.control.audit_log import AuditLog
from nodeagent.api.control.context import Context
from nodeagent.api.control.public.senders import Senders
from nodeagent.api.control.service import served
from nodeagent.api.control.tables import Tables
from nodeagent.api.jobs.listener import JobListener
from nodeagent.api.node import NodeFacts
from nodeagent.api.server import GrpcServer
from nodeagent.config.agent import Config
from nodeagent.config.last import Chosen
from nodeagent.config.reset import VOLATILE, file_system_of
from nodeagent.core.model import NODE, DeviceSeen, Kind, Signal, Started, View
from nodeagent.daemon import host_ids, refusals, systemd
from nodeagent.daemon.catalogs import Catalogs, NoTables, stand_in
from nodeagent.daemon.clock import carry_on
from nodeagent.daemon.pump import Pump, RestartNeeded
from nodeagent.daemon.rebuild import RebuildResult, load_catalogs, rebuild
from nodeagent.daemon.reload import Reloading, table_folders
from nodeagent.daemon.resets.actuator import Actuator
from nodeagent.daemon.resets.past_resets import resets_recorded
from nodeagent.daemon.resets.quiesce import Quiescence
from nodeagent.daemon.sources import configured
from nodeagent.daemon.sources.translate import store_damaged
from nodeagent.journal_stream import runs_under_journal
from nodeagent.memory import give_back
from nodeagent.metrics.collector import NodeMetrics
from nodeagent.metrics.http import MetricsServer
from nodeagent.store.disk.upkeep import Keep
from nodeagent.store.errors import StoreInUseError
from nodeagent.store.event_feed import EventFeed
from nodeagent.store.ledger import Ledger
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
        config = self._config
        # Nothing of what is built up to the start is garbage; looking for it takes a tenth of a long replay.
        gc.disable()
        async with contextlib.AsyncExitStack() as resources:
            keep = Keep(retention_ns=config.store.retention_ns, max_size=config.store.max_size_bytes)
            ledger = Ledger(Path(config.agent.state_dir), host_ids.machine_id(), keep=keep)
            recovery = await ledger.open()
            resources.push_async_callback(ledger.close)
            volatile = _is_volatile(Path(config.agent.state_dir))

            folders = table_folders(config)
            clock = carry_on(recovery.anchor, host_ids.boot_id())
            known = await load_catalogs(
                ledger, recovery, lambda: stand_in(ledger, folders, config.settings())
            )
            rebuilt = await rebuild(ledger, recovery, known)
            engine = rebuilt.engine
            ledger.carry = engine.carry
            catalogs = Catalogs(ledger, known)
            tables = await catalogs.load(folders, config.settings(), engine.digest)

            feed = EventFeed()
            pump = Pump(engine, ledger, feed, clock, systemd.watchdog)
            if rebuilt.damages:
                # What was put back is on the disk before the damage counts as reported.
                await pump.compact()
            started = Started(boot_id=clock.boot_id, version=__version__, doubt=clock.doubt)
            switched_off = configured.switched_off(config, engine.view())
            refused = {refusals.CONFIGURATION: self._refused, refusals.TABLES: catalogs.refused}
            conditions = (*refusals.standing(engine.view(), refused), *_damages(rebuilt))
            resets = await resets_recorded(config.record_dir, clock.rule_ns())
            await pump.begin(
                rebuilt.differences,
                (started, _node(config), *switched_off, *tables, resets, *conditions),
                reported=rebuilt.damages,
            )

            sources = configured.supervisors(
                config, catalogs.current, clock, recovery.cursors, pump.submit, feed.current.view
            )
            actuator = Actuator(
                config,
                clock,
                feed,
                ledger,
                pump.ask,
                {source.name: source for source in sources},
                self._config_path,
            )
            actuator.adopt(feed.current.view)
            pump.act = actuator.act
            quiescence = Quiescence(feed, configured.of_vendors(config, sources))
            quiescence.begin()
            senders = Senders(config.public)
            job_listener = JobListener(
                path=Path(config.jobs_socket),
                feed=feed,
                ask=pump.ask,
                readings=lambda: configured.readings(sources),
                audit=AuditLog(ledger),
                config=config.jobs,
                version=__version__,
                consumer=ledger.consumer,
            )

            def on_config(fresh: Config) -> None:
                actuator.reload(fresh)
                senders.config = fresh.public
                job_listener.reload(fresh.jobs)

            reloading = Reloading(config, self._config_path, catalogs, pump, feed, sources, on_config)
            facts = NodeFacts(
                node_id=host_ids.machine_id(),
                node_name=config.agent.name(),
                boot_id=clock.boot_id,
                version=__version__,
                started_wall_ns=clock.wall_ns(),
            )
            grpc = GrpcServer(
                feed=feed,
                ledger=ledger,
                catalog=lambda: catalogs.current,
                facts=facts,
                config=config,
                served=served(
                    Context(
                        feed=feed,
                        catalog=lambda: catalogs.current,
                        facts=facts,
                        ask=pump.ask,
                        dry_run_reset=pump.dry_run_reset,
                    ),
                    Tables(facts, reloading.reload),
                    Audit(ledger, facts),
                    senders,
                ),
                sources=lambda view: configured.known_sources(view, sources),
            )
            metrics = NodeMetrics(
                feed=feed,
                ledger=ledger,
                facts=facts,
                health=lambda: configured.health(pump, ledger, sources, volatile, senders),
            )
            await grpc.start()
            resources.push_async_callback(grpc.stop)
            if config.jobs.enabled:
                job_listener.open()
                resources.push_async_callback(job_listener.close)
            await self._serve_metrics(metrics, resources)

            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(pump.run())
                for source in sources:
                    tasks.create_task(source.run())
                outlets = [
                    tasks.create_task(metrics.run(recovery.last_seq)),
                    tasks.create_task(self._write_journal(feed, ledger, recovery.last_seq)),
                    tasks.create_task(_report_readiness(feed, grpc, _required(config))),
                    tasks.create_task(reloading.on(self._reload)),
                    tasks.create_task(actuator.run()),
                    tasks.create_task(quiescence.run()),
                    tasks.create_task(job_listener.run()),
                ]
                if not self._refused:
                    outlets.append(tasks.create_task(reloading.keep(config)))
                self._listen_to_signals()
                # What is here now stays: looking it through again for garbage would hold up events by 10 ms.
                gc.freeze()
                gc.enable()
                systemd.ready()
                give_back()
                log.info("nodeagent %s serves on %s", __version__, config.agent.socket)
                await self._stop.wait()
                systemd.stopping()
                await asyncio.gather(job_listener.close(), *(source.stop() for source in sources))
                pump.finish()
                for outlet in outlets:
                    outlet.cancel()
            await pump.compact()

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
        server = MetricsServer(self._config.metrics.listen, metrics)

        async def open_listener() -> None:
            server.start()

        resources.callback(server.stop)
        trying = await open_or_keep_trying(open_listener, "no metrics")
        if trying is not None:
            resources.callback(trying.cancel)


def _is_volatile(state_dir: Path) -> bool:
    kind = file_system_of(state_dir)
    if kind in VOLATILE:
        log.warning(
            "agent.state_dir %s lies on %s: isolations, counts and history are lost at each reboot",
            state_dir,
            kind,
        )
    return kind in VOLATILE


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


def _node(config: Config) -> DeviceSeen:
    """The node itself, which the daemon stands for."""
    return DeviceSeen(
        source="agent",
        device=NODE,
        kind=Kind.NODE,
        vendor="",
        identity=host_ids.machine_id(),
        attributes={"hostname": config.agent.name()},
    )


def _damages(rebuilt: RebuildResult) -> list[Signal]:
    restored = [f"{cell.id}" for cell in rebuilt.restored]
    return [store_damaged(damage, restored) for damage in rebuilt.damages]


def _report(refused: BaseExceptionGroup[BaseException], status: int) -> int:
    for error in refused.exceptions:
        for line in str(error).splitlines():
            log.critical("%s", line)
    return status
