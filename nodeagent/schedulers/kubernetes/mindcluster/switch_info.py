"""The part of MindCluster's ConfigMap that says how the switches of an A3 are. Pure.

Source: ``GetSwitchFaultInfo``, ``getSimpleSwitchFaultStr`` and ``mapFaultLevelToStatus`` of
component/ascend-device-plugin/pkg/common/device.go, Ascend/mind-cluster at 22bb3d98.
"""

from typing import Final, NamedTuple

from nodeagent.client import Level
from nodeagent.schedulers.kubernetes.facts import Facts, SwitchFault
from nodeagent.schedulers.kubernetes.mindcluster.go_json import as_map, text_of

CONFIGURED: Final = "SwitchInfoCfg"

WHOLE_CHIP: Final = 0xFFFF
"""As the driver's field of sixteen bits has it where a fault is of no port."""

_OCCUR: Final = 1

_HEALTHY: Final = "Healthy"


class _Word(NamedTuple):
    level: str
    node: str


_WORDS: Final = {
    Level.NOT_HANDLE: _Word("NotHandle", _HEALTHY),
    Level.SUB_HEALTH: _Word("SubHealthFault", "SubHealthy"),
    Level.RESTART_REQUEST_FAULT: _Word("RestartRequest", "UnHealthy"),
    Level.PRE_SEPARATE_FAULT: _Word("PreSeparate", "PreSeparate"),
    Level.RESET_FAULT: _Word("Separate", "UnHealthy"),
    Level.SEPARATE_FAULT: _Word("Separate", "UnHealthy"),
}
"""From the mildest to the strictest. ResetFault is ours: MindCluster has no word for it."""

_RANKS: Final = {level: rank for rank, level in enumerate(_WORDS)}


def text(facts: Facts, at_s: int) -> str:
    """``NONE`` where nobody observes the switches."""
    if not facts.switches:
        return NONE
    faults = [fault for fault in facts.switch_faults if fault.level in _WORDS]
    worst = max((fault.level for fault in faults), key=_RANKS.__getitem__, default=None)
    return _written(
        codes=[_simple(fault) for fault in faults],
        level="" if worst is None else _WORDS[worst].level,
        at_s=at_s,
        node=_HEALTHY if worst is None else _WORDS[worst].node,
        by_place=as_map(
            {
                f"{fault.code}_{fault.chip}_{_port(fault)}": {
                    "fault_time": fault.at_ms,
                    "fault_level": _WORDS[fault.level].level,
                }
                for fault in faults
            }
        ),
    )


def _written(*, codes: object, level: str, at_s: int, node: str, by_place: object) -> str:
    return text_of(
        {
            "FaultCode": codes,
            "FaultLevel": level,
            "UpdateTime": at_s,
            "NodeStatus": node,
            "FaultTimeAndLevelMap": by_place,
        }
    )


NONE: Final = _written(codes=None, level="", at_s=0, node="", by_place=None)
"""The zero value of the type: nothing is known of switches."""


def _simple(fault: SwitchFault) -> str:
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


def _port(fault: SwitchFault) -> int:
    return WHOLE_CHIP if fault.port is None else fault.port
