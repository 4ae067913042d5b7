"""Events, devices and tables to show: few, and easy to distinguish."""

from nodeagent.core.catalog.catalog import Catalog, ClearOn, DurationRule, FrequencyRule, Row
from nodeagent.core.model import (
    Backing,
    Condition,
    DeviceView,
    Event,
    EventKind,
    Grade,
    Handling,
    Hold,
    Kind,
    Level,
    Presence,
    Reason,
    Source,
    Verdict,
)

SECOND_NS = 1_000_000_000
HOUR_NS = 3600 * SECOND_NS

VERDICTS = {
    Level.NOT_HANDLE: (Verdict.ALLOW, Handling.NONE),
    Level.SUB_HEALTH: (Verdict.ALLOW, Handling.JOB_STRATEGY),
    Level.PRE_SEPARATE_NPU: (Verdict.NO_NEW_JOBS, Handling.NONE),
    Level.SEPARATE_NPU: (Verdict.ISOLATE, Handling.RESCHEDULE),
}


def event(
    device: str = "gpu0",
    level: Level = Level.SEPARATE_NPU,
    kind: EventKind = EventKind.RAISED,
    code: str = "XID_79",
    condition_level: Level | None = Level.SEPARATE_NPU,
    why: str = "",
) -> Event:
    verdict, handling = VERDICTS[level]
    condition_id = f"{device}-id:{code}:1" if code else ""
    reasons = (Reason(kind="condition", id=condition_id, code=code, level=level, text="off the bus"),)
    return Event(
        kind=kind,
        at_ns=5 * SECOND_NS,
        device=device,
        device_id=f"{device}-id",
        device_kind=Kind.CHIP,
        level=level,
        verdict=verdict,
        handling=handling,
        code=code,
        name="GPU has fallen off the bus" if code else "",
        condition_id=condition_id,
        condition_level=condition_level if code else None,
        source="kmsg",
        why=why,
        reasons=reasons if verdict is not Verdict.ALLOW else (),
        evidence={"line": "NVRM: Xid (PCI:0000:3b:00): 79"},
    )


def device(of: Event) -> DeviceView:
    """The device as it stands after an event."""
    return DeviceView(
        id=of.device_id,
        name=of.device,
        kind=of.device_kind,
        vendor="nvidia",
        level=of.level,
        verdict=of.verdict,
        handling=of.handling,
        subhealthy=of.subhealthy,
        observed=of.observed,
        observed_ns=of.at_ns,
        reasons=of.reasons,
        attributes={"pci": "0000:3b:00.0"},
    )


NODE_DEVICE = DeviceView(
    id="node-id",
    name="node",
    kind=Kind.HOST,
    vendor="",
    level=Level.NOT_HANDLE,
    verdict=Verdict.ALLOW,
    handling=Handling.NONE,
    subhealthy=False,
    observed=True,
    observed_ns=5 * SECOND_NS,
)

SOURCE = Source(name="kmsg", required=True)

HOLD = Hold(id="hold-1", device_id="gpu0-id", owner="uid:0", reason="fan swap", since_ns=2 * SECOND_NS)


def condition(of: Event) -> Condition:
    """The condition an event raised."""
    level = of.condition_level or of.level
    return Condition(
        id=of.condition_id,
        device_id=of.device_id,
        code=of.code,
        name=of.name,
        source=of.source,
        presence=Presence(opened_ns=of.at_ns, last_ns=of.at_ns),
        grade=Grade(base_level=level, level=level),
        backing=Backing(evidence=of.evidence),
    )


CATALOG = Catalog(
    digest="cafe",
    rows={
        "XID_79": Row(
            code="XID_79",
            kind=Kind.CHIP,
            vendor="nvidia",
            name="GPU has fallen off the bus",
            level=Level.SEPARATE_NPU,
            clear_on=ClearOn(reboot=True, quiet_ns=10 * 60 * SECOND_NS),
            description="The driver lost the connection.",
            action="Power-cycle the node.",
            file="nvidia.toml:12",
        ),
        "XID_*": Row(
            code="XID_*",
            kind=Kind.CHIP,
            vendor="nvidia",
            name="unknown Xid",
            level=Level.SUB_HEALTH,
            clear_on=ClearOn(operator=True),
            file="nvidia.toml:3",
        ),
    },
    frequency=(
        FrequencyRule(
            id="bus-repeat",
            codes=("XID_79",),
            times=3,
            time_window_ns=24 * HOUR_NS,
            level=Level.MANUALLY_SEPARATE_NPU,
        ),
        FrequencyRule(
            id="any-repeat",
            codes=("*",),
            times=3,
            time_window_ns=24 * HOUR_NS,
            level=Level.MANUALLY_SEPARATE_NPU,
        ),
    ),
    duration=(
        DurationRule(
            id="link-down",
            codes=("81078603",),
            fault_timeout_ns=20 * SECOND_NS,
            recover_timeout_ns=60 * SECOND_NS,
            level=Level.PRE_SEPARATE_NPU,
        ),
    ),
)
