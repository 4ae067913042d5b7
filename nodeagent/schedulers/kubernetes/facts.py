"""What the bridge takes from a Snapshot of the daemon: values, without times that only pass. Pure.

It judges nothing: verdicts are the daemon's.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from nodeagent.client import Condition, Device, HoldKind, Kind, Level, Position, ResetStage, Snapshot, Verdict
from nodeagent.core.model import NODE, decides
from nodeagent.core.state.names import natural

_WORST_FIRST: Final = tuple(reversed(Verdict))

_NPU: Final = re.compile(r"npu(\d+)")
_SWITCH: Final = re.compile(r"ub(\d+)(?:/(\d+))?")
_PART: Final = re.compile(r"type (\d+) number (\d+)")
_SWITCH_SOURCE: Final = "unifiedbus"
_BMC_SOURCE: Final = "bmc"


@dataclass(frozen=True, slots=True, kw_only=True)
class Concern:
    """A chip, or the node, that does not allow work. ``code`` "": no code says why."""

    device: str
    verdict: Verdict
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedChipFault:
    """A code that is open on a chip. ``promoted``: a rule has raised it to this level."""

    code: str
    level: Level
    at_ms: int
    promoted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Npu:
    """``number`` is the physical id. ``isolated``: a person holds it. ``in_use``: or not known."""

    number: int
    series: str
    verdict: Verdict
    level: Level | None
    in_use: bool
    isolated: bool
    recovering: bool
    network_unhealthy: bool
    faults: tuple[ReportedChipFault, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedSwitchFault:
    """``port`` None: of the whole switch chip."""

    chip: int
    port: int | None
    code: str
    level: Level
    at_ms: int
    peer_device: int
    peer_port: int
    severity: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFault:
    """A fault of a part of the node, by the numbers of Huawei's BMC."""

    part_type: int
    part: int
    code: str
    level: Level


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFacts:
    """``concerns`` has the strictest first. ``switches``: the source of switch faults observes."""

    position: Position
    node: Verdict
    concerns: tuple[Concern, ...] = ()
    npus: tuple[Npu, ...] = ()
    switches: bool = False
    switch_faults: tuple[ReportedSwitchFault, ...] = ()
    part_faults: tuple[PartFault, ...] = ()


def facts_of(snapshot: Snapshot) -> SnapshotFacts:
    """Rehearsals that change no verdict are left out."""
    conditions = tuple(each for each in snapshot.conditions if each.affects_verdict)
    by_device: dict[str, list[Condition]] = {}
    for condition in sorted(conditions, key=lambda each: (each.opened_at, each.code)):
        by_device.setdefault(condition.device_id, []).append(condition)
    node = next((each.verdict for each in snapshot.devices if each.name == NODE), Verdict.UNKNOWN)
    return SnapshotFacts(
        position=snapshot.position,
        node=node,
        concerns=_concerns(snapshot.devices),
        npus=tuple(_npus(snapshot, by_device)),
        switches=any(each.name == _SWITCH_SOURCE and each.observing for each in snapshot.sources),
        switch_faults=tuple(_switch_faults(conditions)),
        part_faults=tuple(_part_faults(conditions)),
    )


def _concerns(devices: Sequence[Device]) -> tuple[Concern, ...]:
    """No work is placed on a port or a switch: their effect is in the verdicts of chips and node."""
    found = [
        Concern(device=each.name, verdict=each.verdict, code=_code_of(each))
        for each in devices
        if decides(each.kind, each.name) and each.verdict is not Verdict.ALLOW
    ]
    found.sort(key=lambda each: (_WORST_FIRST.index(each.verdict), natural(each.device)))
    return tuple(found)


def _code_of(device: Device) -> str:
    return next((reason.code for reason in device.reasons if reason.code), "")


def _npus(snapshot: Snapshot, conditions: Mapping[str, Sequence[Condition]]) -> Iterable[Npu]:
    isolated = {each.device_id for each in snapshot.holds if each.kind is HoldKind.ISOLATION}
    resetting = {
        device_id
        for reset in snapshot.resets
        if reset.stage is ResetStage.RUNNING
        for device_id in reset.device_ids
    }
    for device in sorted(snapshot.devices, key=lambda each: natural(each.name)):
        named = _NPU.fullmatch(device.name)
        if named is None or device.kind is not Kind.CHIP:
            continue
        yield Npu(
            number=int(named[1]),
            series=device.attributes.get("series", ""),
            verdict=device.verdict,
            level=device.level,
            in_use=device.holders is None or bool(device.holders) or bool(device.claims),
            isolated=device.id in isolated,
            recovering=device.id in resetting,
            network_unhealthy=device.network_unhealthy,
            faults=tuple(_faults(snapshot, device, conditions.get(device.id, ()))),
        )


def _faults(
    snapshot: Snapshot, device: Device, conditions: Sequence[Condition]
) -> Iterable[ReportedChipFault]:
    for condition in conditions:
        if condition.level is not None:
            yield ReportedChipFault(
                code=condition.code, level=condition.level, at_ms=_ms(condition.opened_at)
            )
    for each in snapshot.promotions:
        if each.device_id == device.id and each.effective and each.level is not None:
            yield ReportedChipFault(code=each.code, level=each.level, at_ms=_ms(each.fired_at), promoted=True)


def _switch_faults(conditions: Sequence[Condition]) -> Iterable[ReportedSwitchFault]:
    for condition in conditions:
        place = _SWITCH.fullmatch(condition.device)
        if condition.source != _SWITCH_SOURCE or place is None or condition.level is None:
            continue
        evidence = condition.evidence
        yield ReportedSwitchFault(
            chip=int(place[1]),
            port=None if place[2] is None else int(place[2]),
            code=condition.code,
            level=condition.level,
            at_ms=_number(evidence, "alarm_time") or _ms(condition.opened_at),
            peer_device=_number(evidence, "peer_device"),
            peer_port=_number(evidence, "peer_port"),
            severity=_number(evidence, "severity"),
        )


def _part_faults(conditions: Sequence[Condition]) -> Iterable[PartFault]:
    for condition in conditions:
        if condition.source != _BMC_SOURCE or condition.level is None:
            continue
        for part_type, part in _PART.findall(condition.evidence.get("parts", "")):
            yield PartFault(
                part_type=int(part_type), part=int(part), code=condition.code, level=condition.level
            )


def _number(evidence: Mapping[str, str], key: str) -> int:
    """0 where nothing was said, as the vendor's library has it."""
    text = evidence.get(key, "")
    return int(text) if text.isdigit() else 0


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)
