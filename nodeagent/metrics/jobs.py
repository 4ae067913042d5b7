"""Supervised jobs as Prometheus metrics: where they are now, and what became of their recoveries since start.

No label names a job: there would be new series for ever. It counts what events say, and judges nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from nodeagent.core.model import Event, EventKind, JobStage, RunReportKind, View, Wanted
from nodeagent.job.model import RunReason

CLAIMED: Final = "claimed"
"""The stage, here, of a job that claims devices and is not supervised."""

OTHER: Final = "other"
BUCKETS: Final = (
    "0.1",
    "0.5",
    "1.0",
    "2.5",
    "5.0",
    "10.0",
    "30.0",
    "60.0",
    "120.0",
    "300.0",
    "600.0",
    "+Inf",
)
"""The buckets in seconds, as Prometheus writes them."""

FAULT: Final = "fault"
ORDER: Final = "order"
SUSPENDED: Final = "suspended"
IN_PLACE: Final = "in_place"
LEFT: Final = "left"
ENDED: Final = "ended"

_STAGES: Final = (*(stage.value for stage in JobStage if stage is not JobStage.ENDED), CLAIMED)
_RERUNS: Final = (*(why.value for why in RunReason if why is not RunReason.FIRST), OTHER)
_SUSPICIONS: Final = (RunReportKind.SUSPENDED.value, RunReportKind.CLEARED.value)
_SLOW: Final = (RunReportKind.SLOW.value, RunReportKind.KEEPS_UP.value)
_CAUSES: Final = (FAULT, ORDER, SUSPENDED)
_OUTCOMES: Final = (IN_PLACE, LEFT, ENDED)
_PHASES: Final = ("stop", "heal", "rerun", "total")


@dataclass(slots=True)
class _Recovery:
    """The recovery of one job, since it was asked to stop or stood still. ``leaves``: asked to leave."""

    cause: str
    at_ns: int
    leaves: bool = False


class JobCounts:
    """The counts of one life of the daemon."""

    def __init__(self) -> None:
        self._reruns = dict.fromkeys(_RERUNS, 0)
        self._suspicions = dict.fromkeys(_SUSPICIONS, 0)
        self._slow = dict.fromkeys(_SLOW, 0)
        self._recoveries = {(cause, outcome): 0 for cause in _CAUSES for outcome in _OUTCOMES}
        self._counted = {phase: [0] * len(BUCKETS) for phase in _PHASES}
        self._sums_s = dict.fromkeys(_PHASES, 0.0)
        self._under_way: dict[str, _Recovery] = {}

    def count(self, event: Event) -> None:
        if event.job is None:
            return
        name = event.job.name
        match event.kind:
            case EventKind.JOB_ASKED:
                self._asked(name, event)
            case EventKind.JOB_SUSPENDED:
                self._suspicions[RunReportKind.SUSPENDED.value] += 1
                self._under_way.setdefault(name, _Recovery(SUSPENDED, event.at_ns))
            case EventKind.JOB_SUSPECTED if event.evidence.get("said") == RunReportKind.CLEARED:
                self._suspicions[RunReportKind.CLEARED.value] += 1
                self._forget_suspension(name)
            case EventKind.JOB_SLOW:
                is_over = event.evidence.get("said") == RunReportKind.KEEPS_UP
                self._slow[_SLOW[is_over]] += 1
            case EventKind.JOB_RERUN:
                self._rerun(name, event)
            case EventKind.JOB_ENDED:
                self._end(name)
            case _:
                return

    def _asked(self, name: str, event: Event) -> None:
        recovery = self._under_way.setdefault(name, _Recovery(FAULT if event.code else ORDER, event.at_ns))
        recovery.leaves = event.evidence.get("wanted") == Wanted.LEAVE

    def _forget_suspension(self, name: str) -> None:
        recovery = self._under_way.get(name)
        if recovery is not None and recovery.cause == SUSPENDED:
            del self._under_way[name]

    def _rerun(self, name: str, event: Event) -> None:
        self._reruns[event.why if event.why in self._reruns else OTHER] += 1
        recovery = self._under_way.pop(name, None)
        if recovery is None:
            return
        self._recoveries[recovery.cause, IN_PLACE] += 1
        total_s = (event.at_ns - recovery.at_ns) / 1e9
        self._observe("total", total_s)
        stopped_s, granted_s = (
            _seconds(event, "stopped_after_s"),
            _seconds(event, "granted_after_s"),
        )
        if stopped_s is not None and granted_s is not None:
            self._observe("stop", stopped_s)
            self._observe("heal", granted_s - stopped_s)
            self._observe("rerun", total_s - granted_s)

    def _end(self, name: str) -> None:
        recovery = self._under_way.pop(name, None)
        if recovery is not None:
            self._recoveries[recovery.cause, LEFT if recovery.leaves else ENDED] += 1

    def _observe(self, phase: str, took_s: float) -> None:
        took_s = max(0.0, took_s)
        place = next(place for place, most_s in enumerate(BUCKETS) if took_s <= float(most_s))
        self._counted[phase][place] += 1
        self._sums_s[phase] += took_s

    def families(self) -> Iterator[Metric]:
        reruns = CounterMetricFamily(
            "nodeagent_job_reruns", "Commands of jobs that were run again in place, by why.", labels=["why"]
        )
        for why, number in self._reruns.items():
            reruns.add_metric([why], number)
        yield reruns
        suspicions = CounterMetricFamily(
            "nodeagent_job_suspicions",
            "Jobs that seemed to make no progress, by how that ended: suspended, or cleared: they go on.",
            labels=["end"],
        )
        for end, number in self._suspicions.items():
            suspicions.add_metric([end], number)
        yield suspicions
        slow = CounterMetricFamily(
            "nodeagent_job_slow",
            "Ranks or chips that held up the others of their job (slow), and those that no longer did"
            " (keeps_up).",
            labels=["what"],
        )
        for what, number in self._slow.items():
            slow.add_metric([what], number)
        yield slow
        recoveries = CounterMetricFamily(
            "nodeagent_job_recoveries",
            "Jobs that were asked to stop or made no progress, by why, and what became of them: they run"
            " again in place, left the node as requested, or ended.",
            labels=["why", "outcome"],
        )
        for (cause, outcome), number in self._recoveries.items():
            recoveries.add_metric([cause, outcome], number)
        yield recoveries
        yield self._seconds_family()

    def _seconds_family(self) -> Metric:
        family = HistogramMetricFamily(
            "nodeagent_job_recovery_seconds",
            "How long recoveries in place took: until the job had stopped (stop), until it was allowed to run"
            " again (heal), until it did (rerun), and in all (total).",
            labels=["phase"],
        )
        for phase, counted in self._counted.items():
            below, buckets = 0, []
            for most_s, number in zip(BUCKETS, counted, strict=True):
                below += number
                buckets.append((most_s, below))
            family.add_metric([phase], buckets, self._sums_s[phase])
        return family


def jobs_by_stage(view: View) -> Iterator[Metric]:
    family = GaugeMetricFamily(
        "nodeagent_jobs",
        "Jobs that use this node, by stage; claimed: they claim devices and are not supervised.",
        labels=["stage"],
    )
    counted = dict.fromkeys(_STAGES, 0)
    for job in view.jobs:
        if job.stage is not JobStage.ENDED:
            counted[CLAIMED if job.stage is None else job.stage.value] += 1
    for stage, number in counted.items():
        family.add_metric([stage], number)
    yield family


def slow_jobs(view: View) -> Iterator[Metric]:
    slow = GaugeMetricFamily("nodeagent_jobs_slow", "Jobs in which a rank or a chip holds up the others now.")
    slow.add_metric([], sum(bool(job.slow) for job in view.jobs))
    yield slow


def _seconds(event: Event, key: str) -> float | None:
    """The core writes it as a number."""
    text = event.evidence.get(key)
    return None if text is None else float(text)
