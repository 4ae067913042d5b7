"""The dashboard of one node: its verdict, what is wrong, and the readings of its chips and links."""

from collections.abc import Sequence
from typing import Final

from grafana_foundation_sdk.builders.dashboard import Dashboard, Row
from grafana_foundation_sdk.builders.timeseries import Panel as Timeseries
from grafana_foundation_sdk.models import units

from monitoring import tables
from monitoring.panels import Query, dashboard, of, stat, table, timeseries

_OF_PART: Final = "{{device}} {{part}}"
_RATE: Final = "[$__rate_interval]"

_CHIPS: Final[Sequence[tuple[str, str, str]]] = (
    ("Temperature", of("nodeagent_temperature_celsius"), units.Celsius),
    ("Power", of("nodeagent_power_watts"), units.Watt),
    (
        "Memory in use",
        of("nodeagent_memory_used_bytes") + " / " + of("nodeagent_memory_total_bytes"),
        units.PercentUnit,
    ),
    ("Utilization", of("nodeagent_utilization_ratio"), units.PercentUnit),
    ("Clocks", of("nodeagent_frequency_hertz"), units.Hertz),
    ("Slowed down", of("nodeagent_throttle") + " > 0", units.Short),
)
_MEMORY: Final[Sequence[tuple[str, str, str]]] = (
    ("Corrected memory errors", "increase(" + of("nodeagent_ecc_corrected_total") + _RATE + ")", units.Short),
    (
        "Uncorrected memory errors",
        "increase(" + of("nodeagent_ecc_uncorrected_total") + _RATE + ")",
        units.Short,
    ),
    (
        "Memory pages and rows taken out of use",
        of("nodeagent_ecc_isolated_pages") + " or " + of("nodeagent_remapped_rows"),
        units.Short,
    ),
)
_LINKS: Final[Sequence[tuple[str, str, str]]] = (
    ("Links that are up", of("nodeagent_link_up"), units.Short),
    ("Losses of a link", "increase(" + of("nodeagent_link_losses_total") + _RATE + ")", units.Short),
    ("Sent", "rate(" + of("nodeagent_link_sent_bytes_total") + _RATE + ")", units.BytesPerSecondIEC),
    ("Received", "rate(" + of("nodeagent_link_received_bytes_total") + _RATE + ")", units.BytesPerSecondIEC),
    (
        "Errors of links",
        "rate("
        + of("nodeagent_link_errors_total")
        + f"{_RATE}) or rate("
        + of("nodeagent_port_errors_total")
        + f"{_RATE}) or rate("
        + of("nodeagent_nvlink_errors_total")
        + f"{_RATE})",
        units.Short,
    ),
    ("NVLinks that are missing", of("nodeagent_nvlink_links_missing"), units.Short),
)


def node() -> Dashboard:
    made = dashboard(
        "nodeagent: node",
        "nodeagent-node",
        "One node with accelerators: verdict, faults, readings.",
        several=False,
    )
    _now(made)
    for title, rows in (("Chips", _CHIPS), ("Memory errors", _MEMORY), ("Links", _LINKS)):
        made.with_row(Row(title))
        for each in rows:
            made.with_panel(_by_part(*each))
    _sources(made)
    _daemon(made)
    _jobs(made)
    return made


def _by_part(title: str, expression: str, unit: str) -> Timeseries:
    return timeseries(title, Query(expression, _OF_PART), unit=unit)


def _now(made: Dashboard) -> None:
    made.with_row(Row("Now"))
    verdict = of("nodeagent_device_verdict", 'kind="node"') + " == 1"
    made.with_panel(stat("Node", Query(verdict, "{{verdict}}"), names=True))
    chips = of("nodeagent_device_verdict", 'kind="chip"') + " == 1"
    made.with_panel(stat("Chips", Query(f"count by (verdict) ({chips})", "{{verdict}}"), width=6))
    made.with_panel(stat("Quiesced on purpose", Query(of("nodeagent_quiesced")), width=3))
    made.with_panel(
        stat("Events in memory only", Query("1 - " + of("nodeagent_store_durable")), bad_from=1, width=3)
    )
    started = "time() - " + of("nodeagent_start_time_seconds")
    made.with_panel(stat("Runs for", Query(started), unit=units.Seconds))
    made.with_panel(stat("Version", Query(of("nodeagent_build_info"), "{{version}}"), names=True))
    for panel in (tables.not_well(), tables.open_faults(), tables.holds(), tables.actions()):
        made.with_panel(panel)


def _sources(made: Dashboard) -> None:
    made.with_row(Row("Sources"))
    made.with_panel(
        table(
            "Sources",
            Query(of("nodeagent_source_expected")),
            Query(of("nodeagent_source_up")),
            columns=(("source", "Source"), ("Value #A", "Should observe")),
            value="Observes",
            unit=units.Short,
            width=8,
        )
    )
    polls = of("nodeagent_source_poll_duration_seconds")
    made.with_panel(
        timeseries("Slowest device of the last poll", Query(polls, "{{source}}"), unit=units.Seconds)
    )
    failures = "rate(" + of("nodeagent_source_poll_failures_total") + _RATE + ")"
    restarts = "increase(" + of("nodeagent_source_restarts_total") + _RATE + ")"
    made.with_panel(
        timeseries(
            "Failed polls a second, restarts of workers",
            Query(failures, "{{source}} failed polls"),
            Query(restarts, "{{source}} restarts"),
        )
    )


def _daemon(made: Dashboard) -> None:
    made.with_row(Row("Daemon"))
    made.with_panel(
        timeseries(
            "Processor",
            Query("rate(" + of("process_cpu_seconds_total") + _RATE + ")", "daemon"),
            Query("rate(" + of("nodeagent_worker_cpu_seconds_total") + _RATE + ")", "worker of {{source}}"),
            unit=units.PercentUnit,
        )
    )
    made.with_panel(
        timeseries(
            "Memory",
            Query(of("process_resident_memory_bytes"), "daemon"),
            Query(of("nodeagent_worker_resident_memory_bytes"), "worker of {{source}}"),
            unit=units.BytesIEC,
        )
    )
    events = "rate(" + of("nodeagent_events_total") + f"{_RATE}) > 0"
    made.with_panel(timeseries("Events a second", Query(events, "{{kind}}")))
    commit = (
        "rate("
        + of("nodeagent_commit_duration_seconds_sum")
        + f"{_RATE}) / rate("
        + of("nodeagent_commit_duration_seconds_count")
        + f"{_RATE})"
    )
    made.with_panel(timeseries("Time of a commit", Query(commit, "mean"), unit=units.Seconds))
    made.with_panel(timeseries("Deliveries that wait", Query(of("nodeagent_queue_depth"), "waiting")))
    made.with_panel(
        timeseries(
            "Lag of consumers",
            Query(of("nodeagent_consumer_lag_events"), "{{consumer}}"),
            description="In events.",
        )
    )
    made.with_panel(tables.certificates())
    made.with_panel(tables.alerts())


def _jobs(made: Dashboard) -> None:
    made.with_row(Row("Jobs"))
    made.with_panel(timeseries("Jobs by stage", Query(of("nodeagent_jobs"), "{{stage}}")))
    reruns = "increase(" + of("nodeagent_job_reruns_total") + _RATE + ")"
    made.with_panel(timeseries("Run again in place", Query(reruns, "{{why}}")))
    seconds = (
        "rate("
        + of("nodeagent_job_recovery_seconds_sum", 'phase="total"')
        + f"{_RATE}) / rate("
        + of("nodeagent_job_recovery_seconds_count", 'phase="total"')
        + f"{_RATE}) > 0"
    )
    made.with_panel(timeseries("Time of a recovery", Query(seconds, "mean"), unit=units.Seconds))
