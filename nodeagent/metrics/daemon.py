"""The health of the daemon and its sources, and messages of other systems, as metrics.

The daemon fills the values of ``Health``; here they only become metric families.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily

from nodeagent.core.model import View


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceHealth:
    """The health of one source and its worker. Counts are since start. ``last_poll_*`` are of all its
    devices: the slowest, and whether each answered well; None before the first.

    ``state`` is the worker's, or ``waiting`` before a respawn, or ``abandoned`` when nothing but a stuck
    process is left. ``absent``: there is nothing of it here, and none is expected. ``expected_chips``: None
    of a source without chips, 0 where any number is right. ``readings`` are the last of each device that is
    observed (``*``: of the source).
    """

    source: str
    state: str
    observing: bool = False
    absent: bool = False
    listed_chips: int = 0
    expected_chips: int | None = None
    pid: int | None = None
    abandoned_pids: tuple[int, ...] = ()
    restarts: int = 0
    polls: int = 0
    poll_failures: int = 0
    last_poll_duration_s: float | None = None
    last_poll_ok: bool | None = None
    late_devices: tuple[str, ...] = ()
    records_lost: int = 0
    garbled: int = 0
    readings: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The health of the daemon. Counts are since start. ``degraded`` says why the store is not durable, "" if
    it is; ``dropped_*`` count what memory could not keep while it was not. ``volatile``: a reboot forgets it.
    ``public_messages`` are by sender and result, ``public_faults`` by sender and what became of them.
    """

    queue_depth: int = 0
    queue_capacity: int = 0
    inputs: int = 0
    commits: int = 0
    commit_total_s: float = 0.0
    commit_last_s: float = 0.0
    degraded: str = ""
    volatile: bool = False
    dropped_events: int = 0
    dropped_inputs: int = 0
    public_messages: Mapping[tuple[str, str], int] = field(default_factory=dict)
    public_faults: Mapping[tuple[str, str], int] = field(default_factory=dict)
    sources: tuple[SourceHealth, ...] = ()


HealthSource = Callable[[], Health]
"""Called from the scraping thread: it may only read attributes."""


def daemon_metrics(health: Health) -> Iterator[Metric]:
    yield GaugeMetricFamily("nodeagent_queue_depth", "Deliveries that wait to be judged.", health.queue_depth)
    yield GaugeMetricFamily(
        "nodeagent_queue_capacity",
        "Deliveries that may wait before sources are held back.",
        health.queue_capacity,
    )
    yield CounterMetricFamily("nodeagent_inputs", "Inputs judged since start.", health.inputs)
    yield SummaryMetricFamily(
        "nodeagent_commit_duration_seconds",
        "Time from a commit's call to its answer.",
        count_value=health.commits,
        sum_value=health.commit_total_s,
    )
    yield GaugeMetricFamily(
        "nodeagent_last_commit_duration_seconds", "The same of the last commit.", health.commit_last_s
    )
    yield GaugeMetricFamily(
        "nodeagent_store_degraded", "1 while the store's disk is in trouble.", float(bool(health.degraded))
    )
    yield GaugeMetricFamily(
        "nodeagent_store_volatile",
        "1 where the store lies in memory, so that isolations and history are lost at a reboot.",
        float(health.volatile),
    )
    dropped = CounterMetricFamily(
        "nodeagent_store_dropped",
        "What memory could not keep while the store's disk was in trouble.",
        labels=["what"],
    )
    dropped.add_metric(["events"], health.dropped_events)
    dropped.add_metric(["inputs"], health.dropped_inputs)
    yield dropped


def source_metrics(view: View, health: Health) -> Iterator[Metric]:
    names = ["source"]
    up = GaugeMetricFamily(
        "nodeagent_source_up",
        "1 while the source observes: it was read and is not lost.",
        labels=[*names, "required"],
    )
    for source in view.sources:
        if not source.device_id:
            up.add_metric([source.name, str(source.required).lower()], float(source.observes))
    duration = GaugeMetricFamily(
        "nodeagent_source_poll_duration_seconds", "Of the source's slowest device, last time.", labels=names
    )
    success = GaugeMetricFamily(
        "nodeagent_source_poll_success", "1 while every device of the source answers well.", labels=names
    )
    for each in health.sources:
        if each.last_poll_duration_s is not None:
            duration.add_metric([each.source], each.last_poll_duration_s)
        if each.last_poll_ok is not None:
            success.add_metric([each.source], float(each.last_poll_ok))
    yield from (up, duration, success)
    yield from _numbers_of_chips(health)
    for name, text, value in _SOURCE_GAUGES:
        gauge = GaugeMetricFamily(name, text, labels=names)
        for each in health.sources:
            gauge.add_metric([each.source], value(each))
        yield gauge
    for name, text, value in _SOURCE_COUNTERS:
        counter = CounterMetricFamily(name, text, labels=names)
        for each in health.sources:
            counter.add_metric([each.source], value(each))
        yield counter


def _numbers_of_chips(health: Health) -> Iterator[Metric]:
    listed = GaugeMetricFamily(
        "nodeagent_source_chips", "Chips that the source listed last.", labels=["source"]
    )
    expected = GaugeMetricFamily(
        "nodeagent_source_expected_chips",
        "Chips that the configuration expects; absent where any number is right.",
        labels=["source"],
    )
    for each in health.sources:
        if each.expected_chips is not None:
            listed.add_metric([each.source], each.listed_chips)
        if each.expected_chips:
            expected.add_metric([each.source], each.expected_chips)
    yield from (listed, expected)


_OfSource = Sequence[tuple[str, str, Callable[[SourceHealth], float]]]
"""Name, help, and what it is of a source."""

_SOURCE_GAUGES: Final[_OfSource] = (
    (
        "nodeagent_source_expected",
        "1 where the source should observe, 0 where nothing of it is here and none is expected.",
        lambda source: float(not source.absent),
    ),
    (
        "nodeagent_source_late_devices",
        "Devices whose call has not come back in time.",
        lambda source: len(source.late_devices),
    ),
    (
        "nodeagent_source_abandoned_workers",
        "Processes of the source that hang in the kernel and were left behind.",
        lambda source: len(source.abandoned_pids),
    ),
)
_SOURCE_COUNTERS: Final[_OfSource] = (
    ("nodeagent_source_polls", "Answers to polls of the source's devices.", lambda source: source.polls),
    ("nodeagent_source_poll_failures", "Those that reported a failure.", lambda source: source.poll_failures),
    ("nodeagent_source_restarts", "Restarts of the source's worker.", lambda source: source.restarts),
    (
        "nodeagent_source_garbled",
        "Messages of the source's worker that were invalid.",
        lambda source: source.garbled,
    ),
    (
        "nodeagent_log_gap_records",
        "Log records that were overwritten before they were read.",
        lambda source: source.records_lost,
    ),
)


def public_metrics(health: Health) -> Iterator[Metric]:
    """The senders are those of the configuration; all other names are one, ``(unknown)``."""
    messages = CounterMetricFamily(
        "nodeagent_public_messages",
        "Messages of other systems since start: accepted, or the status they were refused with.",
        labels=["sender", "result"],
    )
    for (sender, result), count in health.public_messages.items():
        messages.add_metric([sender, result], count)
    faults = CounterMetricFamily(
        "nodeagent_public_faults",
        "Faults in accepted messages since start, by what became of them.",
        labels=["sender", "outcome"],
    )
    for (sender, outcome), count in health.public_faults.items():
        faults.add_metric([sender, outcome], count)
    yield from (messages, faults)
