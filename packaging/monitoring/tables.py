"""Tables that both dashboards have: devices that are not well, open faults, holds and actions."""

from typing import Final

from grafana_foundation_sdk.builders.table import Panel as Table
from grafana_foundation_sdk.models import units

from monitoring.panels import NODE_COLUMN, Query, of, table, with_part

INSTANCE: Final = (("instance", NODE_COLUMN),)
DEVICE: Final = (*INSTANCE, ("device", "Device"))
IDENTITY: Final = (("product", "Product"), ("serial", "Serial number"), ("slot", "Slot"), ("pci", "PCI"))

_NOT_WELL: Final = of("nodeagent_device_verdict", 'verdict!="ALLOW"') + " == 1"


def not_well() -> Table:
    return table(
        "Devices that are not well",
        Query(with_part(_NOT_WELL, "verdict")),
        Query(
            "1000 * ("
            + of("nodeagent_device_verdict_since_seconds")
            + f" and ignoring (verdict) {_NOT_WELL})"
        ),
        columns=(*DEVICE, ("verdict", "Verdict"), *IDENTITY),
        value="Since",
        description="`nodeagent why DEVICE` on the node shows the cause and what to do.",
    )


def open_faults() -> Table:
    """Without those of level NotHandleFault."""
    faults = of("nodeagent_conditions", 'level!="NotHandleFault"') + " > bool 0"
    return table(
        "Open faults",
        Query(
            "1000 * "
            + of("nodeagent_condition_since_seconds")
            + f" * ignoring (level, injected) group_right () ({faults})"
        ),
        columns=(*DEVICE, ("code", "Code"), ("level", "Level"), ("injected", "Rehearsed")),
        value="Since",
        description="`nodeagent explain CODE` shows what a code means.",
    )


def holds() -> Table:
    return table(
        "Holds",
        Query("1000 * " + of("nodeagent_hold_since_seconds")),
        columns=(*DEVICE, ("kind", "Kind")),
        value="Since",
        width=12,
    )


def actions() -> Table:
    return table(
        "Resets in progress",
        Query("1000 * " + of("nodeagent_action_since_seconds")),
        columns=(*DEVICE, ("mode", "Mode"), ("stage", "Stage")),
        value="Proposed",
        width=12,
    )


def alerts() -> Table:
    return table(
        "Alerts",
        Query(of("ALERTS", 'alertname=~"Nodeagent.*"')),
        columns=(
            ("alertname", "Alert"),
            ("alertstate", "State"),
            ("severity", "Severity"),
            *DEVICE,
            ("source", "Source"),
        ),
        width=12,
        description="docs/runbooks.md has a section for each.",
    )


def certificates() -> Table:
    return table(
        "Certificates by the time that is left",
        Query("bottomk(20, " + of("nodeagent_certificate_expiry_timestamp_seconds") + " - time())"),
        columns=(*INSTANCE, ("use", "Use"), ("common_name", "Name"), ("serial", "Serial number")),
        value="Expires in",
        unit=units.Seconds,
        width=12,
    )
