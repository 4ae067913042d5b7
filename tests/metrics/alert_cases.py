"""For each alert: series for which it fires, and others that look alike for which it is silent.

The tests play each case on three nodes: on one as it is here, on one of the same name in another cluster, and
on one that is quiesced, on which nothing may fire.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

Labels = tuple[tuple[str, str], ...]
Series = Mapping[tuple[str, Labels], str]
"""By metric and labels, without those of the node, the values as promtool reads them; time begins at 0."""

PART: Final = {"product": "A2", "serial": "77", "pci": "0000:0d:00.0", "slot": "3"}
SHOWN: Final = "(A2, serial 77, slot 3, PCI 0000:0d:00.0)"
DAY_S: Final = 86_400


@dataclass(frozen=True, kw_only=True)
class AlertCase:
    """``silent_at`` and ``fires_at`` are times since the first sample; samples are ``every`` so long.

    ``labels`` are those of the alert but for the node's; ``summary`` follows the node's name.
    ``outlasts``: the alert looks back, also once the daemon is down.
    """

    alert: str
    severity: str
    series: Series
    silent_at: str
    fires_at: str
    labels: Mapping[str, str] = field(default_factory=dict)
    summary: str
    every: str = "1m"
    outlasts: bool = False


def info(device: str = "npu3", kind: str = "chip", **labels: str) -> Series:
    labels = {"device": device, "kind": kind, "id": f"id-{device}", "firmware": "7.1", **PART, **labels}
    return {of("nodeagent_device_info", **labels): "1x2000"}


def of(metric: str, **labels: str) -> tuple[str, Labels]:
    return metric, tuple(labels.items())


CHIP: Final = {"device": "npu3", "kind": "chip"}

CASES: Final = (
    AlertCase(
        alert="NodeagentNodeTakesNoWork",
        severity="page",
        series={
            of("nodeagent_device_verdict", device="node", kind="node", verdict="NO_NEW_JOBS"): "1x10",
            of("nodeagent_device_verdict", device="npu1", kind="chip", verdict="NO_NEW_JOBS"): "1x10",
        },
        silent_at="1m",
        fires_at="3m",
        labels={"device": "node", "kind": "node", "verdict": "NO_NEW_JOBS"},
        summary=" takes no work (NO_NEW_JOBS)",
    ),
    AlertCase(
        alert="NodeagentChipIsolated",
        severity="ticket",
        every="15s",
        series={
            of("nodeagent_device_verdict", **CHIP, verdict="ISOLATE"): "1x20",
            **info(),
            # This one waits for its reset.
            of("nodeagent_device_verdict", device="npu4", kind="chip", verdict="ISOLATE"): "1x20",
            of("nodeagent_holds", device="npu4", kind="reset_pending"): "1x20",
            **info("npu4"),
        },
        silent_at="0s",
        fires_at="30s",
        labels={**CHIP, "verdict": "ISOLATE", **PART},
        summary=f": npu3 takes no work {SHOWN}",
    ),
    AlertCase(
        alert="NodeagentChipUnknown",
        severity="ticket",
        series={
            # The daemon restarts at 5 min: its page is not there once, and what it knows since when stays.
            of("nodeagent_device_verdict", **CHIP, verdict="UNKNOWN"): "1 1 1 1 1 stale 1x10",
            of("nodeagent_device_verdict_since_seconds", **CHIP): "60 60 60 60 60 stale 60x10",
            **info(),
            of("nodeagent_device_verdict", device="npu4", kind="chip", verdict="ALLOW"): "1x20",
            of("nodeagent_device_verdict_since_seconds", device="npu4", kind="chip"): "0x20",
            **info("npu4"),
        },
        silent_at="6m",
        fires_at="8m",
        labels={**CHIP, "verdict": "UNKNOWN", **PART},
        summary=f": nothing is known of npu3 for 5 min {SHOWN}",
    ),
    AlertCase(
        alert="NodeagentChipSubhealthy",
        outlasts=True,
        severity="ticket",
        series={
            # Some scrapes fail at 30 min.
            of("nodeagent_device_level", **CHIP, level="SubHealthFault"): "1x30 stale _x2 1x60",
            **info(),
            # This one recovers, and falls ill again.
            of("nodeagent_device_level", device="npu4", kind="chip", level="SubHealthFault"): (
                "1x30 stale _x10 1x50"
            ),
            **info("npu4"),
        },
        silent_at="59m",
        fires_at="61m",
        labels={**CHIP, "level": "SubHealthFault", **PART},
        summary=f": npu3 works below its capacity for 1 h {SHOWN}",
    ),
    AlertCase(
        alert="NodeagentChipsMissing",
        severity="page",
        series={
            of("nodeagent_source_chips", source="ascend"): "7x10",
            of("nodeagent_source_expected_chips", source="ascend"): "8x10",
            of("nodeagent_source_chips", source="nvidia"): "8x10",
            of("nodeagent_source_expected_chips", source="nvidia"): "8x10",
        },
        silent_at="1m",
        fires_at="3m",
        labels={"source": "ascend"},
        summary=": ascend lists 7 chips, fewer than configured",
    ),
    AlertCase(
        alert="NodeagentPortFlaps",
        severity="ticket",
        series={
            of("nodeagent_link_losses_total", device="eth2", part="needed"): "0+1x10",
            **info("eth2", "link", pci="0000:86:00.0", driver="mlx5_core"),
            of("nodeagent_link_losses_total", device="eth3", part="needed"): "0 1 2 2x8",
            **info("eth3", "link"),
        },
        silent_at="3m",
        fires_at="10m",
        labels={"device": "eth2", "pci": "0000:86:00.0", "driver": "mlx5_core"},
        summary=": eth2 lost its link 10 times in an hour (PCI 0000:86:00.0, driver mlx5_core)",
    ),
    AlertCase(
        alert="NodeagentResetFailed",
        severity="page",
        series={
            of("nodeagent_conditions", device="npu3", code="reset_failed", level="SeparateNPU"): "0 0 1x10",
            **info(),
            of("nodeagent_conditions", device="npu4", code="80E01801", level="RestartNPU"): "1x10",
            **info("npu4"),
        },
        silent_at="1m",
        fires_at="3m",
        labels={"device": "npu3", **PART},
        summary=f": resets do not help npu3 {SHOWN}",
    ),
    AlertCase(
        alert="NodeagentResetWaits",
        severity="ticket",
        series={
            # Proposed at 0 s; the daemon restarts at 20 min.
            of("nodeagent_action_since_seconds", device="npu3", kind="reset", mode="on", stage="waiting"): (
                "0x20 stale 0x40"
            ),
            **info(),
            of(
                "nodeagent_action_since_seconds", device="npu4", kind="reset", mode="dry-run", stage="waiting"
            ): "0x60",
            **info("npu4"),
        },
        silent_at="30m",
        fires_at="32m",
        labels={"device": "npu3", "kind": "reset", "mode": "on", "stage": "waiting", **PART},
        summary=f": a reset of npu3 waits for 32m 0s {SHOWN}",
    ),
    AlertCase(
        alert="NodeagentResetNeedsApproval",
        severity="page",
        series={
            of("nodeagent_action_since_seconds", device="npu3", kind="reset", mode="ask", stage="asking"): (
                "_x3 180x10"
            ),
            **info(),
            of("nodeagent_action_since_seconds", device="npu4", kind="reset", mode="on", stage="running"): (
                "0x10"
            ),
            **info("npu4"),
        },
        silent_at="2m",
        fires_at="4m",
        labels={"device": "npu3", "kind": "reset", "mode": "ask", "stage": "asking", **PART},
        summary=f": a reset of npu3 needs an approval {SHOWN}",
    ),
    AlertCase(
        alert="NodeagentJobHangs",
        outlasts=True,
        severity="ticket",
        series={
            of("nodeagent_job_suspicions_total", end="suspended"): "0 0 1 1x20",
            of("nodeagent_job_suspicions_total", end="cleared"): "0+1x20",
        },
        silent_at="1m",
        fires_at="4m",
        labels={"end": "suspended"},
        summary=": a supervised job makes no progress",
    ),
    AlertCase(
        alert="NodeagentDown",
        outlasts=True,
        severity="page",
        # Its metrics are gone with it.
        series={of("up"): "1 1 0x10", of("nodeagent_store_durable"): "1 1 stale"},
        silent_at="3m",
        fires_at="5m",
        summary=": nodeagent does not answer",
    ),
    AlertCase(
        alert="NodeagentSourceLost",
        severity="page",
        series={
            of("nodeagent_source_up", source="nvidia", required="false"): "0x10",
            of("nodeagent_source_expected", source="nvidia"): "1x10",
            # Nothing of it is here, and none is expected.
            of("nodeagent_source_expected", source="ascend"): "0x10",
            of("nodeagent_source_up", source="kmsg", required="true"): "1x10",
            of("nodeagent_source_expected", source="kmsg"): "1x10",
        },
        silent_at="1m",
        fires_at="3m",
        labels={"source": "nvidia"},
        summary=": nvidia does not observe",
    ),
    AlertCase(
        alert="NodeagentWorkerRestarts",
        outlasts=True,
        severity="ticket",
        series={
            of("nodeagent_source_restarts_total", source="ascend"): "0 1 2 3 4 4x10",
            of("nodeagent_source_restarts_total", source="kmsg"): "0 1 1x10",
        },
        silent_at="3m",
        fires_at="4m",
        labels={"source": "ascend"},
        summary=": the worker of ascend was restarted 4 times in an hour",
    ),
    AlertCase(
        alert="NodeagentStoreNotDurable",
        severity="page",
        series={of("nodeagent_store_durable"): "1 0x20"},
        silent_at="1m",
        fires_at="3m",
        summary=": events and orders are kept in memory only",
    ),
    AlertCase(
        alert="NodeagentFilesRejected",
        severity="ticket",
        series={
            of("nodeagent_conditions", device="node", code="tables_rejected", injected="false"): "0 1x20",
            of("nodeagent_conditions", device="npu3", code="80E01801", injected="false"): "1x20",
        },
        silent_at="1m",
        fires_at="3m",
        labels={"code": "tables_rejected"},
        summary=": tables_rejected; the last good files are in force",
    ),
    AlertCase(
        alert="NodeagentConsumerLags",
        severity="ticket",
        series={
            of("nodeagent_consumer_lag_events", consumer="scheduler"): "2000x20",
            of("nodeagent_consumer_lag_events", consumer="reports"): "5x20",
        },
        silent_at="9m",
        fires_at="11m",
        labels={"consumer": "scheduler"},
        summary=": scheduler has not acknowledged 2k events",
    ),
    AlertCase(
        alert="NodeagentCertificateExpiresSoon",
        severity="ticket",
        series={
            **{
                of("nodeagent_certificate_expiry_timestamp_seconds", **labels): f"{expiry_s}x20"
                for labels, expiry_s in (
                    ({"use": "server", "common_name": "gpu-17", "serial": "a1"}, 10 * DAY_S),
                    ({"use": "client_ca", "common_name": "root", "serial": "b2"}, 300 * DAY_S),
                    # One that lives for three days.
                    ({"use": "client_ca", "common_name": "short", "serial": "c3"}, 2 * DAY_S),
                )
            },
            **{
                of("nodeagent_certificate_begin_timestamp_seconds", **labels): f"-{before_s}x20"
                for labels, before_s in (
                    ({"use": "server", "common_name": "gpu-17", "serial": "a1"}, 80 * DAY_S),
                    ({"use": "client_ca", "common_name": "root", "serial": "b2"}, 65 * DAY_S),
                    ({"use": "client_ca", "common_name": "short", "serial": "c3"}, DAY_S),
                )
            },
        },
        silent_at="4m",
        fires_at="6m",
        labels={"use": "server", "common_name": "gpu-17", "serial": "a1"},
        summary=": the server certificate gpu-17 (serial a1) expires in 9d 23h 54m 0s",
    ),
    AlertCase(
        alert="NodeagentCertificateExpires",
        severity="page",
        series={
            of(
                "nodeagent_certificate_expiry_timestamp_seconds",
                use="server",
                common_name="gpu-17",
                serial="a1",
            ): f"{DAY_S}x20",
            of(
                "nodeagent_certificate_begin_timestamp_seconds",
                use="server",
                common_name="gpu-17",
                serial="a1",
            ): f"-{89 * DAY_S}x20",
            of(
                "nodeagent_certificate_expiry_timestamp_seconds",
                use="client_ca",
                common_name="root",
                serial="b2",
            ): f"{10 * DAY_S}x20",
            of(
                "nodeagent_certificate_begin_timestamp_seconds",
                use="client_ca",
                common_name="root",
                serial="b2",
            ): f"-{80 * DAY_S}x20",
        },
        silent_at="4m",
        fires_at="6m",
        labels={"use": "server", "common_name": "gpu-17", "serial": "a1"},
        summary=(": the server certificate gpu-17 (serial a1) expires in 23h 54m 0s; connections fail then"),
    ),
)
