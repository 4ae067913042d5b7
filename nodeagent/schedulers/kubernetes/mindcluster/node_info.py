"""MindCluster's ConfigMap of a node's other parts, byte for byte as its NodeD writes it. Pure.

A node without faults has none: NodeD deletes it then.

Source: component/noded/pkg/reporter/cmreporter/configmap_reporter.go, pkg/control/faultcontrol/fault.go and
the types of pkg/common/type.go, Ascend/mind-cluster at 22bb3d98.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from nodeagent.client import Level, Verdict
from nodeagent.schedulers.kubernetes.facts import Facts
from nodeagent.schedulers.kubernetes.mindcluster.go_json import check_code, text_of
from nodeagent.schedulers.kubernetes.mindcluster.node_parts import PART_TYPES, UNKNOWN
from nodeagent.schedulers.kubernetes.node_status import time_text

NAME_PREFIX: Final = "mindx-dl-nodeinfo-"
NAMESPACE: Final = "mindx-dl"
CONFIGURED: Final = "NodeInfo"
UPDATED: Final = "updateTime"
RENEWED_AFTER_S: Final = 1800
"""``defaultReportInterval``."""

_LEVELS: Final = (Level.NOT_HANDLE, Level.PRE_SEPARATE_FAULT, Level.SEPARATE_FAULT)
_STATUS: Final = ("Healthy", "PreSeparate", "UnHealthy")
"""The status of a node, by the place of its worst level."""

_BY_VERDICT: Final = {Verdict.NO_NEW_JOBS: 1, Verdict.ISOLATE: 2}


def data(facts: Facts, *, at_s: int) -> dict[str, str] | None:
    """The ConfigMap's data, None where there is nothing to say.

    The node's verdict counts beside the faults: it also knows isolations, and faults that no BMC lists.
    """
    parts: dict[tuple[str, int], dict[str, Level]] = {}
    for fault in facts.part_faults:
        place = (PART_TYPES.get(fault.part_type, UNKNOWN), fault.part)
        parts.setdefault(place, {})[fault.code] = fault.level
    listed = [
        {
            "DeviceType": kind,
            "DeviceId": number,
            "FaultCode": list(codes),
            "FaultLevel": str(_LEVELS[max(map(_rank, codes.values()))]),
        }
        for (kind, number), codes in parts.items()
    ]
    worst = max(map(_rank, (fault.level for fault in facts.part_faults)), default=0)
    status = max(worst, _BY_VERDICT.get(facts.node, 0))
    if not listed and status == 0:
        return None
    info = {"FaultDevList": listed, "NodeStatus": _STATUS[status]}
    return {
        CONFIGURED: text_of({"NodeInfo": info, "CheckCode": check_code(info)}),
        UPDATED: time_text(at_s),
    }


def written_at_s(written: Mapping[str, str]) -> int | None:
    """The time in data that somebody has written, None where it cannot be read."""
    try:
        return round(datetime.fromisoformat(written[UPDATED]).timestamp())
    except (KeyError, ValueError):
        return None


def _rank(level: Level) -> int:
    """SubHealthFault is no level of NodeD's: what is not to be handled is the nearest."""
    return _LEVELS.index(level) if level in _LEVELS else 0
