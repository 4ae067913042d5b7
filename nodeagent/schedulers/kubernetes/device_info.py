"""MindCluster's ConfigMap of a node's NPUs and switches, byte for byte as its device-plugin writes it. Pure.

The meaning is the daemon's, not the plug-in's: a chip is unhealthy where the daemon places no work on it.
Nothing is written for chips of another form than those of ``NAMES``, and virtual NPUs are not supported.

Source: Ascend/mind-cluster at 22bb3d98, component/ascend-device-plugin: ``WriteDeviceInfoDataIntoCM`` of
pkg/kubeclient/client_server.go, ``updateDeviceInfo`` of pkg/device/ascend910.go, ``getDeviceFaultsWithMode``
of pkg/device/ascendcommon.go, the types of pkg/common/proto.go; for switches ``GetSwitchFaultInfo``,
``getSimpleSwitchFaultStr`` and ``mapFaultLevelToStatus`` of pkg/common/device.go. The files that its own
types have written are in tests/schedulers/kubernetes/golden.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from nodeagent.client import Level, Verdict
from nodeagent.schedulers.kubernetes.facts import Npu, ReportedChipFault, ReportedSwitchFault, SnapshotFacts
from nodeagent.schedulers.kubernetes.go_json import as_map, check_code, text_of

NAME_PREFIX: Final = "mindx-dl-deviceinfo-"
NAMESPACE: Final = "kube-system"
CONFIGURED: Final = "DeviceInfoCfg"
RENEWED_AFTER_S: Final = 300
"""``defaultUpdateTimeInterval``: a reader can tell that the writer is gone."""

DESCRIPTION: Final = (
    "The field[xxx.com/xxx] is sunset. Volcano has the ability to maintain the usage status of "
    "chips on its own, and can temporarily use this field by configuring the Volcano parameter"
    " 'self-maintain-available-card'"
)
"""``DescriptionValue``: part of the form."""


class ResourceNames(NamedTuple):
    """``key`` of the resource, and the first part of a chip's name."""

    key: str
    prefix: str


NAMES: Final[Mapping[str, ResourceNames]] = {
    "910": ResourceNames("huawei.com/Ascend910", "Ascend910"),
    "910B": ResourceNames("huawei.com/Ascend910", "Ascend910"),
    "A3": ResourceNames("huawei.com/Ascend910", "Ascend910"),
    "950": ResourceNames("huawei.com/npu", "npu"),
}
"""The names for each series. ``GetAscend910Key`` and ``getAscend910Name``."""

_WITH_SWITCHES: Final = ("A3", "950")

NETWORK_CODES: Final = frozenset({0x81078603, 0x81078607, 0x110000002, 0x110001024})
"""``NetworkFaultCodes`` of pkg/common/fault_code.go."""

_VENDORS_CODE: Final = re.compile(r"[0-9A-Fa-f]{8,9}")
_CHIP_LEVELS: Final = (
    Level.MANUALLY_SEPARATE_NPU,
    Level.SEPARATE_NPU,
    Level.PRE_SEPARATE_NPU,
    Level.RESTART_NPU,
    Level.FREE_RESTART_NPU,
    Level.RESTART_BUSINESS,
    Level.RESTART_REQUEST,
    Level.SUB_HEALTH,
    Level.NOT_HANDLE,
)
"""Strictest first: ``getMostSeriousFaultType``."""

_AS_CHIP_LEVEL: Final = {
    Level.SEPARATE_FAULT: Level.SEPARATE_NPU,
    Level.RESET_FAULT: Level.RESTART_NPU,
    Level.RESTART_REQUEST_FAULT: Level.RESTART_REQUEST,
    Level.PRE_SEPARATE_FAULT: Level.PRE_SEPARATE_NPU,
}


def series_of(facts: SnapshotFacts) -> str:
    """That of all NPUs of the node, "" where they differ, are unknown or have no form of their own here."""
    found = {npu.series for npu in facts.npus}
    return found.pop() if len(found) == 1 and found <= NAMES.keys() else ""


def data(facts: SnapshotFacts, *, super_pod_id: int, server_index: int, at_s: int) -> dict[str, str] | None:
    """The ConfigMap's data, None where this node has no NPUs that it can speak of."""
    series = series_of(facts)
    if not series:
        return None
    names = NAMES[series]
    devices = {
        "DeviceList": as_map(dict(_device_list(names, facts.npus))),
        "UpdateTime": at_s,
    }
    info = {
        "DeviceInfo": devices,
        "SuperPodID": super_pod_id,
        "ServerIndex": server_index,
        "CheckCode": check_code(devices),
    }
    separated = [npu for npu in facts.npus if _is_separated(npu)]
    made = {
        CONFIGURED: text_of(info),
        "ManuallySeparateNPU": ",".join(f"{names.prefix}-{npu.number}" for npu in separated),
        "UpgradeFaultReason": text_of(_upgrade_reasons(names, facts.npus)),
        "Description": DESCRIPTION,
    }
    if series in _WITH_SWITCHES:
        made[SWITCHES_CONFIGURED] = switch_text(facts, at_s) if series == "A3" else NO_SWITCHES
    return made


def written_at_s(written: Mapping[str, str]) -> int | None:
    """The time in data that somebody has written, None where it cannot be read."""
    try:
        at_s = json.loads(written[CONFIGURED])["DeviceInfo"]["UpdateTime"]
    except (KeyError, TypeError, ValueError):
        return None
    return at_s if isinstance(at_s, int) else None


def _device_list(names: ResourceNames, npus: Sequence[Npu]) -> Iterable[tuple[str, object]]:
    def listed(chosen: Iterable[Npu]) -> str:
        """Sorted as texts: 10 before 2 (``sets.String.List``)."""
        return ",".join(sorted(f"{names.prefix}-{npu.number}" for npu in chosen))

    yield names.key, listed(npu for npu in npus if not _is_unhealthy(npu) and not npu.in_use)
    yield f"{names.key}-Recovering", listed(npu for npu in npus if npu.recovering)
    yield f"{names.key}-Unhealthy", listed(npu for npu in npus if _is_unhealthy(npu))
    yield f"{names.key}-NetworkUnhealthy", listed(npu for npu in npus if npu.network_unhealthy)
    yield f"{names.key}-Fault", text_of([entry for npu in npus for entry in _fault_entries(names, npu)])


def _is_unhealthy(npu: Npu) -> bool:
    """A chip that takes no new work goes on with what it has: its job is not to be rescheduled.

    UNKNOWN changes nothing: it is the verdict only where there is no other. A network's fault has a list of
    its own.
    """
    worst = _worst(_without_network(npu.faults))
    is_own = (
        npu.isolated or not npu.network_unhealthy or worst not in (None, Level.SUB_HEALTH, Level.NOT_HANDLE)
    )
    if npu.verdict is Verdict.ISOLATE:
        return is_own
    return npu.verdict is Verdict.NO_NEW_JOBS and is_own and not npu.in_use


def _is_separated(npu: Npu) -> bool:
    return npu.isolated or _worst(npu.faults) is Level.MANUALLY_SEPARATE_NPU


def _fault_entries(names: ResourceNames, npu: Npu) -> Iterable[dict[str, object]]:
    network = [fault for fault in npu.faults if _is_of_network(fault)]
    if network or npu.network_unhealthy:
        yield _entry("CardNetworkUnhealthy", names, npu, network, _worst(network) or npu.level)
    own = _without_network(npu.faults)
    if any(_VENDORS_CODE.fullmatch(fault.code) for fault in own) or _is_unhealthy(npu):
        level = Level.MANUALLY_SEPARATE_NPU if npu.isolated else _worst(own) or npu.level
        yield _entry("CardUnhealthy", names, npu, own, level)


def _entry(
    kind: str, names: ResourceNames, npu: Npu, faults: Sequence[ReportedChipFault], level: Level | None
) -> dict[str, object]:
    """Codes of our own have no place in a list of the vendor's: they show in the level."""
    coded = [fault for fault in faults if _VENDORS_CODE.fullmatch(fault.code)]
    word = str(_chip_level(level or Level.SEPARATE_NPU))
    at_and_level = {
        fault.code.upper(): {"fault_time": fault.at_ms, "fault_level": str(_chip_level(fault.level))}
        for fault in sorted(coded, key=lambda fault: fault.promoted)
    }
    return {
        "fault_type": kind,
        "npu_name": f"{names.prefix}-{npu.number}",
        "large_model_fault_level": word,
        "fault_level": word,
        "fault_handling": word,
        "fault_code": ",".join(dict.fromkeys(fault.code.upper() for fault in coded)),
        "fault_time_and_level_map": as_map(dict(at_and_level)),
    }


def _upgrade_reasons(names: ResourceNames, npus: Sequence[Npu]) -> dict[str, object]:
    """Only frequency rules promote; MindCluster's two other ways are no promotions here."""
    reasons: dict[str, object] = {}
    for npu in npus:
        promoted = [fault for fault in npu.faults if fault.promoted and _VENDORS_CODE.fullmatch(fault.code)]
        if promoted:
            reasons[f"{names.prefix}-{npu.number}"] = [
                {
                    "upgrade_time": fault.at_ms,
                    "fault_code": fault.code.upper(),
                    "fault_level": str(_chip_level(fault.level)),
                    "upgrade_type": "FaultFrequency",
                }
                for fault in promoted
            ]
    return as_map(reasons)


def _is_of_network(fault: ReportedChipFault) -> bool:
    return _VENDORS_CODE.fullmatch(fault.code) is not None and int(fault.code, 16) in NETWORK_CODES


def _without_network(faults: Sequence[ReportedChipFault]) -> list[ReportedChipFault]:
    return [fault for fault in faults if not _is_of_network(fault)]


def _worst(faults: Sequence[ReportedChipFault]) -> Level | None:
    levels = [_chip_level(fault.level) for fault in faults]
    return min(levels, key=_CHIP_LEVELS.index, default=None)


def _chip_level(level: Level) -> Level:
    return _AS_CHIP_LEVEL.get(level, level)


SWITCHES_CONFIGURED: Final = "SwitchInfoCfg"
WHOLE_CHIP: Final = 0xFFFF
"""As the driver's field of sixteen bits has it where a fault is of no port."""

_OCCUR: Final = 1
_HEALTHY_SWITCHES: Final = "Healthy"


class _SwitchLevel(NamedTuple):
    level: str
    node: str


_SWITCH_LEVELS: Final = {
    Level.NOT_HANDLE: _SwitchLevel("NotHandle", _HEALTHY_SWITCHES),
    Level.SUB_HEALTH: _SwitchLevel("SubHealthFault", "SubHealthy"),
    Level.RESTART_REQUEST_FAULT: _SwitchLevel("RestartRequest", "UnHealthy"),
    Level.PRE_SEPARATE_FAULT: _SwitchLevel("PreSeparate", "PreSeparate"),
    Level.RESET_FAULT: _SwitchLevel("Separate", "UnHealthy"),
    Level.SEPARATE_FAULT: _SwitchLevel("Separate", "UnHealthy"),
}
"""From the mildest to the strictest. ResetFault is ours: MindCluster has no word for it."""

_SWITCH_RANKS: Final = {level: rank for rank, level in enumerate(_SWITCH_LEVELS)}


def switch_text(facts: SnapshotFacts, at_s: int) -> str:
    """``NONE`` where the switches are not observed."""
    if not facts.switches:
        return NO_SWITCHES
    faults = [fault for fault in facts.switch_faults if fault.level in _SWITCH_LEVELS]
    worst = max((fault.level for fault in faults), key=_SWITCH_RANKS.__getitem__, default=None)
    return _switch_data(
        codes=[_switch_fault(fault) for fault in faults],
        level="" if worst is None else _SWITCH_LEVELS[worst].level,
        at_s=at_s,
        node=_HEALTHY_SWITCHES if worst is None else _SWITCH_LEVELS[worst].node,
        by_place=as_map(
            {
                f"{fault.code}_{fault.chip}_{_port(fault)}": {
                    "fault_time": fault.at_ms,
                    "fault_level": _SWITCH_LEVELS[fault.level].level,
                }
                for fault in faults
            }
        ),
    )


def _switch_data(*, codes: object, level: str, at_s: int, node: str, by_place: object) -> str:
    return text_of(
        {
            "FaultCode": codes,
            "FaultLevel": level,
            "UpdateTime": at_s,
            "NodeStatus": node,
            "FaultTimeAndLevelMap": by_place,
        }
    )


NO_SWITCHES: Final = _switch_data(codes=None, level="", at_s=0, node="", by_place=None)
"""The zero value of the type: nothing is known of switches."""


def _switch_fault(fault: ReportedSwitchFault) -> str:
    return text_of(
        {
            "EventType": int(fault.code.strip("[]").split(",")[0], 16),
            "AssembledFaultCode": fault.code,
            "PeerPortDevice": fault.peer_device,
            "PeerPortId": fault.peer_port,
            "SwitchChipId": fault.chip,
            "SwitchPortId": _port(fault),
            "Severity": fault.severity,
            "Assertion": _OCCUR,
            "AlarmRaisedTime": fault.at_ms,
        }
    )


def _port(fault: ReportedSwitchFault) -> int:
    return WHOLE_CHIP if fault.port is None else fault.port
