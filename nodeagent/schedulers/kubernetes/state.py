"""What the bridge knows, what it can be given, what it can do, and how its state changes. Pure.

Nothing of it is stored: a bridge that starts reads the daemon's state and the cluster's, and continues.

A failed request is tried again soon at first, since a conflict is over at once; later pauses double. A pause
is never shorter than the API server asks for by Retry-After (RFC 9110, section 10.2.3; it sends it with 429
and 503).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from nodeagent.client import Position, Verdict
from nodeagent.schedulers.kubernetes.cluster import (
    Found,
    InfoObject,
    NodeObject,
    Object,
    Scope,
    ours_in,
    relevant,
    says,
)
from nodeagent.schedulers.kubernetes.facts import SnapshotFacts
from nodeagent.schedulers.loop import LoopTick


class Target(StrEnum):
    """What an effect is about. Each is tried again in its own time."""

    NODE = "Node"
    CONDITION = "condition of the Node"
    DEVICE_INFO = "ConfigMap mindx-dl-deviceinfo"
    NODE_INFO = "ConfigMap mindx-dl-nodeinfo"
    NODED = "DaemonSet noded"
    DAEMON = "nodeagent"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadObject:
    """Read it as it is now."""

    target: Target


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTaints:
    """All taints of the node, if it still is of this version."""

    resource_version: str
    taints: Sequence[Object]
    target: Target = Target.NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class SetCondition:
    """Ours, next to those of others."""

    condition: Object
    target: Target = Target.CONDITION


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateConfigMap:
    target: Target
    config_map: Object


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceConfigMap:
    """It names the version that it replaces."""

    target: Target
    config_map: Object


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteConfigMap:
    """If it still is of this version."""

    target: Target
    resource_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ack:
    """Everything up to here is in the cluster."""

    position: Position
    target: Target = Target.DAEMON


ClusterEffect = (
    ReadObject | SetTaints | SetCondition | CreateConfigMap | ReplaceConfigMap | DeleteConfigMap | Ack
)
FIRST_PAUSE_NS: Final = 100_000_000
LONGEST_PAUSE_NS: Final = 60_000_000_000
LONGEST_RETRY_AFTER_S: Final = 600

_SECOND_NS: Final = 1_000_000_000
_MOST_DOUBLINGS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """``failures`` in a row. Nothing is tried before ``not_before_ns``."""

    failures: int
    not_before_ns: int
    reason: str


def trouble_after(
    before: Trouble | None, reason: str, retry_after_s: int, jitter: float, now_ns: int
) -> Trouble:
    """``jitter`` from 0 to 1 makes the pause up to half as long again."""
    failures = 1 if before is None else before.failures + 1
    pause_ns = min(FIRST_PAUSE_NS << min(failures - 1, _MOST_DOUBLINGS), LONGEST_PAUSE_NS)
    asked_ns = min(retry_after_s, LONGEST_RETRY_AFTER_S) * _SECOND_NS
    spread_ns = int(pause_ns * jitter / 2)
    return Trouble(
        failures=failures, not_before_ns=now_ns + max(pause_ns, asked_ns) + spread_ns, reason=reason
    )


SECOND_NS: Final = 1_000_000_000
CONFLICT: Final = 409
NOT_FOUND: Final = 404

NOT_KEPT: Final = "the API server accepted it and keeps something else: look for what changes it on its way"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockReading:
    """``ns`` of a clock that only goes forward, ``s`` what people's clocks say."""

    ns: int
    s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """As configured, for this node."""

    node: str
    scope: Scope
    resume_after_ns: int
    device_info: bool
    node_info: bool
    super_pod_id: int
    server_index: int


# --- what it is given ---


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsReported:
    """The daemon's state."""

    facts: SnapshotFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonSilent:
    """The daemon does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectSeen:
    """An object in the cluster as it is now; ``found`` None: there is none. Of NODED only that counts.

    A watch or a list may tell of what a write of ours has changed since: that is passed over.
    """

    target: Target
    found: Found


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestDone:
    """``found`` is the object as the effect left it."""

    effect: ClusterEffect
    found: Found = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFailed:
    """``status`` 0: no answer. ``jitter`` is from 0 to 1, drawn by the shell, so that nodes do not come back
    all at once."""

    effect: ClusterEffect
    status: int
    reason: str
    retry_after_s: int = 0
    jitter: float = 0.5


ClusterInput = FactsReported | DaemonSilent | ObjectSeen | RequestDone | RequestFailed


# --- what it knows ---


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownConfigMap:
    """A ConfigMap as it was seen last, at ``at_ns``. Not ``fresh``: it has to be read before anything is
    written.
    """

    fresh: bool = False
    found: InfoObject | None = None
    at_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """``node`` None: not seen yet, or there is none. ``well_since_ns``: since when nothing asks for a taint.

    ``written_ns``: when the bridge wrote each last. ``noded``: whether MindCluster's NodeD is installed, None
    where that was not looked for yet.
    """

    facts: SnapshotFacts | None = None
    silent_since_ns: int | None = None
    well_since_ns: int | None = None
    node: NodeObject | None = None
    node_is_fresh: bool = False
    written_ns: Mapping[Target, int] = field(default_factory=dict)
    infos: Mapping[Target, KnownConfigMap] = field(
        default_factory=lambda: {Target.DEVICE_INFO: KnownConfigMap(), Target.NODE_INFO: KnownConfigMap()}
    )
    noded: bool | None = None
    noded_at_ns: int = 0
    acked: Position | None = None
    troubles: Mapping[Target, Trouble] = field(default_factory=dict)


def taken(
    settings: ClusterSettings, state: ClusterState, given: ClusterInput | LoopTick, now: ClockReading
) -> ClusterState:
    """The state after what is given."""
    match given:
        case FactsReported(facts=facts):
            is_well = relevant(facts, settings.scope) is Verdict.ALLOW
            since_ns = now.ns if state.well_since_ns is None else state.well_since_ns
            return replace(
                state, facts=facts, silent_since_ns=None, well_since_ns=since_ns if is_well else None
            )
        case DaemonSilent():
            since_ns = now.ns if state.silent_since_ns is None else state.silent_since_ns
            return replace(state, silent_since_ns=since_ns, well_since_ns=None)
        case ObjectSeen(target=target, found=found):
            if isinstance(found, NodeObject) and found.is_older_than(state.node):
                return state
            return _seen(state, target, found, now)
        case RequestDone(effect=effect, found=found):
            return _done(state, effect, found, now)
        case RequestFailed():
            return _failed(state, given, now)
        case LoopTick():
            return state


def _seen(state: ClusterState, target: Target, found: Found, now: ClockReading) -> ClusterState:
    match target:
        case Target.NODE | Target.CONDITION:
            if not isinstance(found, NodeObject):  # One that comes later waits for nothing.
                written_ns = {each: state.written_ns[each] for each in state.written_ns.keys() & state.infos}
                return replace(state, node=None, node_is_fresh=True, written_ns=written_ns)
            return replace(state, node=found, node_is_fresh=True)
        case Target.NODED:
            return replace(state, noded=bool(found), noded_at_ns=now.ns)
        case Target.DEVICE_INFO | Target.NODE_INFO:
            info = found if isinstance(found, InfoObject) else None
            before = state.infos[target]
            return _with_info(state, target, replace(before, fresh=True, found=info, at_ns=now.ns))
        case Target.DAEMON:
            return state


def _done(state: ClusterState, effect: ClusterEffect, found: Found, now: ClockReading) -> ClusterState:
    """What it says now is what was written: nothing has to be read again."""
    if isinstance(effect, Ack):
        return replace(_works(state, effect.target), acked=effect.position)
    state = _seen(state, effect.target, found, now)
    if not isinstance(effect, ReadObject):
        state = replace(state, written_ns={**state.written_ns, effect.target: now.ns})
    if isinstance(effect, SetTaints | SetCondition) and not _is_kept(effect, found):
        return _failed(state, RequestFailed(effect=effect, status=0, reason=NOT_KEPT), now)
    return _works(state, effect.target)


def _works(state: ClusterState, target: Target) -> ClusterState:
    return replace(state, troubles={each: state.troubles[each] for each in state.troubles if each != target})


def _is_kept(effect: SetTaints | SetCondition, found: object) -> bool:
    """An admission webhook may take away what was written, and would do so each time."""
    if not isinstance(found, NodeObject):
        return True
    if isinstance(effect, SetTaints):
        return ours_in(effect.taints) == ours_in(found.taints)
    return found.condition is not None and says(found.condition) == says(effect.condition)


def _failed(state: ClusterState, failed: RequestFailed, now: ClockReading) -> ClusterState:
    """After a conflict, or where something is gone, what is known is old: it is read again first."""
    target, effect = failed.effect.target, failed.effect
    trouble = trouble_after(
        state.troubles.get(target), failed.reason, failed.retry_after_s, failed.jitter, now.ns
    )
    state = replace(state, troubles={**state.troubles, target: trouble})
    is_old = failed.status in (CONFLICT, NOT_FOUND) and not isinstance(effect, ReadObject)
    if is_old and target in (Target.NODE, Target.CONDITION):
        return replace(state, node_is_fresh=False)
    if is_old and target in state.infos:
        return _with_info(state, target, replace(state.infos[target], fresh=False))
    return state


def _with_info(state: ClusterState, target: Target, known: KnownConfigMap) -> ClusterState:
    return replace(state, infos={**state.infos, target: known})
