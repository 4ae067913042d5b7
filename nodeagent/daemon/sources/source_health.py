"""How a source and its workers do, put together for the metrics; read from any thread."""

from nodeagent.daemon.sources.observed.observation import Observation
from nodeagent.daemon.sources.source import Statistics
from nodeagent.daemon.workers.worker_set import WorkerSet
from nodeagent.metrics.health_values import SourceHealth


def health_of(
    source: str, workers: WorkerSet, observation: Observation, statistics: Statistics
) -> SourceHealth:
    worker = workers.worker
    late = worker.lateness.late if worker else ()
    answers = tuple(statistics.answers.values())
    is_well = not late and not observation.is_lost and all(ok for _, ok in answers)
    return SourceHealth(
        source=source,
        state=workers.state,
        observing=observation.observing,
        absent=observation.absent,
        listed_chips=observation.chips.listed,
        expected_chips=observation.chips.number,
        pid=worker.child.pid if worker else None,
        abandoned_pids=tuple(abandoned.child.pid for abandoned in tuple(workers.abandoned)),
        restarts=max(0, statistics.spawned - 1),
        polls=statistics.polls,
        poll_failures=statistics.poll_failures,
        last_poll_duration_s=max((took_s for took_s, _ in answers), default=None),
        last_poll_ok=is_well if answers or not is_well else None,
        late_devices=late,
        records_lost=statistics.records_lost,
        garbled=statistics.garbled,
        readings={
            device: readings
            for device, readings in tuple(statistics.readings.items())
            if observation.observes(device)
        },
    )
