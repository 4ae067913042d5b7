"""How a source and its workers do, put together for the metrics; read from any thread."""

from nodeagent.daemon.crew import Crew
from nodeagent.daemon.observation import Observation
from nodeagent.daemon.source import Statistics
from nodeagent.outlets.health import SourceHealth


def health_of(source: str, crew: Crew, observation: Observation, statistics: Statistics) -> SourceHealth:
    worker = crew.worker
    return SourceHealth(
        source=source,
        state=crew.state,
        observing=observation.observing,
        absent=observation.absent,
        pid=worker.child.pid if worker else None,
        abandoned_pids=tuple(abandoned.child.pid for abandoned in tuple(crew.abandoned)),
        restarts=max(0, statistics.spawned - 1),
        polls=statistics.polls,
        poll_failures=statistics.poll_failures,
        last_poll_duration_s=statistics.last_poll_duration_s,
        last_poll_ok=statistics.last_poll_ok,
        late_devices=worker.lateness.late if worker else (),
        records_lost=statistics.records_lost,
        garbled=statistics.garbled,
        readings={
            device: readings
            for device, readings in tuple(statistics.readings.items())
            if observation.observes(device)
        },
    )
