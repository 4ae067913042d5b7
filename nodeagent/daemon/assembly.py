"""The parts that work beside the pump, made and joined to each other. None of them runs yet."""

import os
from dataclasses import dataclass
from pathlib import Path

from nodeagent import __version__
from nodeagent.api.control.audit import AuditLog, AuditReader
from nodeagent.api.control.context import Context
from nodeagent.api.control.senders import Senders
from nodeagent.api.control.service import served
from nodeagent.api.control.tables import Tables
from nodeagent.api.jobs.listener import JobListener
from nodeagent.api.node import NodeFacts
from nodeagent.api.server import GrpcServer
from nodeagent.config.config import Config
from nodeagent.config.load import where_set
from nodeagent.daemon import host_ids
from nodeagent.daemon.recovery import Recovered
from nodeagent.daemon.reload import Reloading
from nodeagent.daemon.resets import launch
from nodeagent.daemon.resets.actuator import Actuator
from nodeagent.daemon.resets.quiesce import Quiescence
from nodeagent.daemon.sources import configured
from nodeagent.daemon.sources.rebaseline import Rebaselining
from nodeagent.daemon.sources.supervisor import Supervisor
from nodeagent.metrics.collector import NodeMetrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    sources: list[Supervisor]
    actuator: Actuator
    quiescence: Quiescence
    rebaselining: Rebaselining
    job_listener: JobListener
    reloading: Reloading
    grpc: GrpcServer
    metrics: NodeMetrics


def assemble(config: Config, config_path: Path | None, recovered: Recovered) -> Parts:
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

    reloading = Reloading(config, config_path, catalogs, pump, feed, sources, on_config)
    facts = NodeFacts(
        node_id=host_ids.machine_id(),
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
        grpc=_grpc(config, config_path, recovered, facts, reloading, senders),
        metrics=NodeMetrics(
            feed=feed,
            ledger=ledger,
            facts=facts,
            health=lambda: configured.health(pump, ledger, sources, recovered.volatile, senders),
        ),
    )


def _grpc(
    config: Config,
    config_path: Path | None,
    recovered: Recovered,
    facts: NodeFacts,
    reloading: Reloading,
    senders: Senders,
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
    )
