"""The dashboard of all nodes: how many are well, what is wrong where, and which nodes are not watched."""

from grafana_foundation_sdk.builders.dashboard import Dashboard, Row
from grafana_foundation_sdk.models import units

from monitoring import tables
from monitoring.panels import Query, dashboard, of, stat, table, timeseries


def fleet() -> Dashboard:
    made = dashboard(
        "nodeagent: fleet",
        "nodeagent-fleet",
        "All nodes with accelerators that nodeagent watches.",
        several=True,
    )
    _nodes(made)
    _faults(made)
    _watching(made)
    _resets_and_jobs(made)
    return made


def _nodes(made: Dashboard) -> None:
    made.with_row(Row("Nodes"))
    verdicts = of("nodeagent_device_verdict", 'kind="node"') + " == 1"
    made.with_panel(stat("Nodes", Query(f"count by (verdict) ({verdicts})", "{{verdict}}"), width=8))
    chips = of("nodeagent_device_verdict", 'kind="chip"') + " == 1"
    made.with_panel(stat("Chips", Query(f"count by (verdict) ({chips})", "{{verdict}}"), width=8))
    silent = 'count(up{cluster=~"$cluster",job=~"$job",instance=~"$instance"} == 0) or vector(0)'
    made.with_panel(stat("Nodes without an answer", Query(silent), bad_from=1))
    made.with_panel(stat("Quiesced on purpose", Query("sum(" + of("nodeagent_quiesced") + ")")))
    made.with_panel(
        timeseries("Chips by verdict", Query(f"count by (verdict) ({chips})", "{{verdict}}"), width=12)
    )
    made.with_panel(tables.alerts())


def _faults(made: Dashboard) -> None:
    made.with_row(Row("What is wrong"))
    made.with_panel(tables.not_well())
    made.with_panel(tables.open_faults())
    codes = "topk(10, count by (code) (" + of("nodeagent_conditions", 'level!="NotHandleFault"') + "))"
    made.with_panel(timeseries("Devices by fault code", Query(codes, "{{code}}"), width=12))
    worst = (
        "topk(10, sum by (instance, device) (increase("
        + of("nodeagent_ecc_corrected_total")
        + "[$__range])) > 0)"
    )
    made.with_panel(
        table(
            "Most corrected memory errors in the time shown",
            Query(worst),
            columns=tables.DEVICE,
            value="Errors",
            unit=units.Short,
            width=12,
        )
    )
    made.with_panel(tables.holds())
    made.with_panel(tables.actions())


def _watching(made: Dashboard) -> None:
    made.with_row(Row("Whether nodes are watched"))
    lost = (
        of("nodeagent_source_expected")
        + " == 1 unless ignoring (required) "
        + of("nodeagent_source_up")
        + " == 1"
    )
    made.with_panel(
        table(
            "Sources that should observe and do not",
            Query(lost),
            columns=(*tables.INSTANCE, ("source", "Source")),
            width=12,
        )
    )
    made.with_panel(
        table(
            "Stores that are not durable",
            Query(of("nodeagent_store_durable") + " == 0"),
            columns=tables.INSTANCE,
            width=12,
        )
    )
    made.with_panel(
        timeseries(
            "Consumers that lag most",
            Query("topk(10, " + of("nodeagent_consumer_lag_events") + ")", "{{instance}} {{consumer}}"),
            description="Events that a named consumer has not acknowledged.",
        )
    )
    versions = "count by (version) (" + of("nodeagent_build_info") + ")"
    made.with_panel(timeseries("Versions", Query(versions, "{{version}}")))
    digests = "count by (digest) (" + of("nodeagent_catalog_info") + ")"
    made.with_panel(timeseries("Tables in force", Query(digests, "{{digest}}")))
    made.with_panel(tables.certificates())
    costly = "topk(10, rate(" + of("process_cpu_seconds_total") + "[$__rate_interval]))"
    made.with_panel(
        timeseries(
            "Daemons that use most of a processor",
            Query(costly, "{{instance}}"),
            unit=units.PercentUnit,
            width=12,
        )
    )


def _resets_and_jobs(made: Dashboard) -> None:
    made.with_row(Row("Resets and jobs"))
    ended = "sum by (mode, state) (increase(" + of("nodeagent_actions_total") + "[$__rate_interval]))"
    made.with_panel(timeseries("Resets that ended", Query(ended, "{{mode}} {{state}}")))
    stages = "sum by (stage) (" + of("nodeagent_jobs") + ")"
    made.with_panel(timeseries("Jobs by stage", Query(stages, "{{stage}}")))
    recovered = (
        "sum by (why, outcome) (increase(" + of("nodeagent_job_recoveries_total") + "[$__rate_interval]))"
    )
    made.with_panel(timeseries("Jobs that were stopped or hung", Query(recovered, "{{why}}: {{outcome}}")))
