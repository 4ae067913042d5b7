"""This node in the cluster: what the bridge reads of its objects, and the condition and taint that it
writes.

Pure: objects in, values out. A taint of ours keeps new pods away and ends none. Taints and conditions of
others are not touched.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, NamedTuple, Self

from nodeagent.client import Verdict
from nodeagent.core.model import NODE
from nodeagent.schedulers.kubernetes.facts import Concern, SnapshotFacts

CONDITION: Final = "AcceleratorsHealthy"
TAINT: Final = "nodeagent/no-new-work"
EFFECT: Final = "NoSchedule"
HEARTBEAT_S: Final = 300
"""As a kubelet that has nothing new to say (``nodeStatusReportFrequency`` of its configuration)."""

MAX_NAMED: Final = 8
"""Concerns in one message."""

_KEEPS_WORK_AWAY: Final = (Verdict.NO_NEW_JOBS, Verdict.ISOLATE)
_REASONS: Final = {
    Verdict.ALLOW: "AcceleratorsAllowWork",
    Verdict.UNKNOWN: "AcceleratorsNotObserved",
    Verdict.NO_NEW_JOBS: "AcceleratorsTakeNoNewJobs",
    Verdict.ISOLATE: "AcceleratorsIsolated",
}
_STATUS: Final = {Verdict.ALLOW: "True", Verdict.UNKNOWN: "Unknown"}
_NUMBER: Final = re.compile(r" #\d+\Z")
_NOT_IN_A_LABEL: Final = re.compile(r"[^A-Za-z0-9._-]+")
MAX_LABEL: Final = 63

Object = Mapping[str, object]
Scope = Literal["chip", "node", "off"]


class Wording(NamedTuple):
    """``message`` without the number of the event."""

    status: str
    reason: str
    message: str


SILENT: Final = Wording("Unknown", "NodeagentDoesNotAnswer", "nodeagent: the daemon does not answer")


def wording(facts: SnapshotFacts) -> Wording:
    """The strictest first, each with its code, which is what people look for."""
    if not facts.concerns:
        return Wording("True", _REASONS[Verdict.ALLOW], "nodeagent: every accelerator allows work")
    worst = facts.concerns[0].verdict
    named = ", ".join(map(_named, facts.concerns[:MAX_NAMED]))
    further = len(facts.concerns) - MAX_NAMED
    message = f"nodeagent: {named}" + (f" and {further} more" if further > 0 else "")
    return Wording(_STATUS.get(worst, "False"), _REASONS[worst], message)


def condition(want: Wording, seq: int, before: Object | None, at_s: int) -> Object | None:
    """The condition to write, None where the present one is the same, and recent.

    The number is that of the event after which it was first said.
    """
    if before is not None and says(before) == want:
        if heartbeat_in_s(before, at_s) > 0:
            return None
        message = before["message"]
    else:
        message = f"{want.message} #{seq}"
    is_same = before is not None and before.get("status") == want.status
    since = before.get("lastTransitionTime") if before is not None and is_same else None
    return {
        "type": CONDITION,
        "status": want.status,
        "reason": want.reason,
        "message": message,
        "lastHeartbeatTime": time_text(at_s),
        "lastTransitionTime": since or time_text(at_s),
    }


def heartbeat_in_s(standing: Object | None, at_s: int) -> int:
    """After how long the condition is to be written again though it says the same; 0: now."""
    written_s = 0 if standing is None else _seconds(standing.get("lastHeartbeatTime"))
    left_s = written_s + HEARTBEAT_S - at_s
    return left_s if 0 < left_s <= HEARTBEAT_S else 0


def relevant(facts: SnapshotFacts, scope: Scope) -> Verdict:
    """The strictest verdict that a taint is for."""
    if scope == "off":
        return Verdict.ALLOW
    if scope == "node":
        return facts.node
    return facts.concerns[0].verdict if facts.concerns else Verdict.ALLOW


def keeps_work_away(verdict: Verdict) -> bool:
    return verdict in _KEEPS_WORK_AWAY


def tainted(facts: SnapshotFacts, scope: Scope, taints: Sequence[Object]) -> Sequence[Object]:
    """The node's taints with ours, as the facts are now."""
    concerns = [each for each in facts.concerns if scope == "chip" or each.device == NODE]
    ours = {"key": TAINT, "value": _label(concerns[0].code if concerns else ""), "effect": EFFECT}
    if ours_in(taints) == ours_in((ours,)):
        return taints
    return (*without_ours(taints), ours)


def ours_in(taints: Sequence[Object]) -> list[object]:
    """The values of our taint: one, or none."""
    return [each.get("value", "") for each in taints if is_ours(each)]


def without_ours(taints: Sequence[Object]) -> Sequence[Object]:
    return tuple(each for each in taints if not is_ours(each))


def is_ours(taint: Object) -> bool:
    return (taint.get("key"), taint.get("effect")) == (TAINT, EFFECT)


def time_text(at_s: int) -> str:
    """As the API writes times."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _named(concern: Concern) -> str:
    return f"{concern.device} {concern.code or concern.verdict}"


def says(standing: Object) -> Wording:
    message = _NUMBER.sub("", str(standing.get("message", "")))
    return Wording(str(standing.get("status")), str(standing.get("reason")), message)


def _seconds(text: object) -> int:
    """0 for what is no time: long ago."""
    try:
        return round(datetime.fromisoformat(str(text)).timestamp())
    except ValueError:
        return 0


def _label(code: str) -> str:
    """Codes such as ``[0x00f103b0,155904,na,na]`` are no value of a taint: it has the form of a label's."""
    return _NOT_IN_A_LABEL.sub("_", code)[:MAX_LABEL].strip("._-")


MARK: Final = "nodeagent/written-by"
WRITER: Final = "nodeagent"
"""An annotation. MindCluster's writers replace the whole object: a ConfigMap without it is theirs."""

READERS_LABEL: Final = "mx-consumer-cim"
"""``CIMCMLabelKey``: MindCluster's ClusterD watches the ConfigMaps with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeObject:
    """``condition`` is ours, None where there is none yet."""

    resource_version: str
    taints: Sequence[Object]
    condition: Object | None

    @classmethod
    def of(cls, node: Mapping[str, Any]) -> Self:
        conditions = node.get("status", {}).get("conditions") or ()
        return cls(
            resource_version=node["metadata"]["resourceVersion"],
            taints=tuple(node.get("spec", {}).get("taints") or ()),
            condition=next((each for each in conditions if each.get("type") == CONDITION), None),
        )

    def is_older_than(self, other: "NodeObject | None") -> bool:
        """Versions of one resource are whole numbers that grow (KEP-5504, stable since Kubernetes 1.35).

        After a restore from a backup they are smaller. The next write or look shows that, within minutes.
        """
        if other is None:
            return False
        mine, others = self.resource_version, other.resource_version
        return mine.isdigit() and others.isdigit() and int(mine) < int(others)


@dataclass(frozen=True, slots=True, kw_only=True)
class InfoObject:
    """A ConfigMap of MindCluster's form. ``is_ours``: it was this bridge that wrote it last."""

    resource_version: str
    data: Mapping[str, str]
    is_ours: bool

    @classmethod
    def of(cls, config_map: Mapping[str, Any]) -> Self:
        metadata = config_map["metadata"]
        return cls(
            resource_version=metadata["resourceVersion"],
            data=config_map.get("data") or {},
            is_ours=(metadata.get("annotations") or {}).get(MARK) == WRITER,
        )


Found = NodeObject | InfoObject | bool | None
"""An object, None where there is none. Of a thing that is not read, only whether it is there."""


def config_map(name: str, namespace: str, data: Mapping[str, str], resource_version: str | None) -> Object:
    """The object to write. With a version it replaces that one and no other."""
    metadata: dict[str, object] = {
        "name": name,
        "namespace": namespace,
        "labels": {READERS_LABEL: "true"},
        "annotations": {MARK: WRITER},
    }
    if resource_version is not None:
        metadata["resourceVersion"] = resource_version
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}
