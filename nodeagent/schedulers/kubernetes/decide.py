"""What the bridge does next: the cluster is compared with what the daemon says, and one difference is mended.

Pure, no clock. The taint comes first, since a job may only leave a node once nothing new is placed there. A
position is acknowledged once everything that it means is in the cluster, or is not ours to write.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from nodeagent.schedulers.kubernetes import cluster, device_info, node_info
from nodeagent.schedulers.kubernetes.cluster import NodeObject
from nodeagent.schedulers.kubernetes.facts import SnapshotFacts
from nodeagent.schedulers.kubernetes.state import (
    SECOND_NS,
    Ack,
    ClockReading,
    ClusterEffect,
    ClusterInput,
    ClusterSettings,
    ClusterState,
    CreateConfigMap,
    DeleteConfigMap,
    KnownConfigMap,
    ReadObject,
    ReplaceConfigMap,
    SetCondition,
    SetTaints,
    Target,
    taken,
)
from nodeagent.schedulers.loop import Decision, LoopTick

SILENT_AFTER_NS: Final = 60 * SECOND_NS
"""A daemon that restarts is not silent yet."""

LOOK_AGAIN_NS: Final = 300 * SECOND_NS
"""The time between two looks at an object of another writer: once it is removed, it is ours."""

BETWEEN_WRITES_NS: Final = SECOND_NS
"""The time between two writes of one thing. ``MinCMReportInterval`` of MindCluster: its readers expect no
more.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wish:
    """What is wanted of one target. ``settled``: what the facts mean for it is done, or is not to be done by
    us.
    """

    settled: bool
    effect: ClusterEffect | None = None
    at_ns: int | None = None


def decide(
    settings: ClusterSettings, state: ClusterState, given: ClusterInput | LoopTick, now: ClockReading
) -> Decision[ClusterState, ClusterEffect]:
    """The state after what is given, and what to do in it."""
    state = taken(settings, state, given, now)
    wishes = [_patiently(state, target, wish, now) for target, wish in _wishes(settings, state, now)]
    effect = next((wish.effect for wish in wishes if wish.effect is not None), None)
    facts = state.facts
    if effect is None and facts is not None and _answers(state) and all(wish.settled for wish in wishes):
        wish = _patiently(state, Target.DAEMON, _acknowledged(state, facts), now)
        effect = wish.effect
        wishes.append(wish)
    wakes = [wish.at_ns for wish in wishes if wish.at_ns is not None]
    return Decision(state=state, effect=effect, wake_ns=min(wakes, default=None))


def _answers(state: ClusterState) -> bool:
    """The last report of a silent daemon is not written further."""
    return state.silent_since_ns is None


def _patiently(state: ClusterState, target: Target, wish: _Wish, now: ClockReading) -> _Wish:
    trouble = state.troubles.get(target)
    if wish.effect is None or trouble is None or trouble.not_before_ns <= now.ns:
        return wish
    return _Wish(settled=False, at_ns=trouble.not_before_ns)


def _wishes(
    settings: ClusterSettings, state: ClusterState, now: ClockReading
) -> Iterable[tuple[Target, _Wish]]:
    yield Target.NODE, _node(settings, state, now)
    if state.node_is_fresh and state.node is not None:
        yield Target.CONDITION, _spaced(state, Target.CONDITION, _condition(state, state.node, now), now)
    if settings.device_info:
        yield Target.DEVICE_INFO, _info(settings, state, Target.DEVICE_INFO, now)
    if settings.node_info:
        yield Target.NODED, _noded(state, now)
        if state.noded is False:
            yield Target.NODE_INFO, _info(settings, state, Target.NODE_INFO, now)


def _acknowledged(state: ClusterState, facts: SnapshotFacts) -> _Wish:
    if state.acked == facts.position:
        return _Wish(settled=True)
    return _Wish(settled=False, effect=Ack(position=facts.position))


def _node(settings: ClusterSettings, state: ClusterState, now: ClockReading) -> _Wish:
    if not state.node_is_fresh:
        return _Wish(settled=False, effect=ReadObject(target=Target.NODE))
    if state.node is None:
        return _Wish(settled=False)
    return _spaced(state, Target.NODE, _taint(settings, state, state.node, now), now)


def _spaced(state: ClusterState, target: Target, wish: _Wish, now: ClockReading) -> _Wish:
    """A writer that undoes our writes at once must not cause a storm of requests."""
    written_ns = state.written_ns.get(target)
    if wish.effect is None or written_ns is None or now.ns >= written_ns + BETWEEN_WRITES_NS:
        return wish
    return _Wish(settled=False, at_ns=written_ns + BETWEEN_WRITES_NS)


def _taint(settings: ClusterSettings, state: ClusterState, node: NodeObject, now: ClockReading) -> _Wish:
    """Nothing while nothing is known. It goes once all has been well for a while, or where none is wanted."""
    facts = state.facts
    if facts is None:
        return _Wish(settled=True)
    verdict = cluster.relevant(facts, settings.scope)
    if cluster.keeps_work_away(verdict):
        wanted = cluster.tainted(facts, settings.scope, node.taints)
        return _Wish(settled=True) if wanted is node.taints else _set_taints(node.resource_version, wanted)
    rest = cluster.without_ours(node.taints)
    if len(rest) == len(node.taints) or state.well_since_ns is None:
        return _Wish(settled=True)
    due_ns = state.well_since_ns + settings.resume_after_ns
    if now.ns < due_ns:
        return _Wish(settled=True, at_ns=due_ns)
    return _set_taints(node.resource_version, rest)


def _set_taints(resource_version: str, taints: Iterable[cluster.Object]) -> _Wish:
    return _Wish(settled=False, effect=SetTaints(resource_version=resource_version, taints=tuple(taints)))


def _condition(state: ClusterState, node: NodeObject, now: ClockReading) -> _Wish:
    """It says what was known last until the daemon has been silent for a while."""
    silent_at_ns = None if state.silent_since_ns is None else state.silent_since_ns + SILENT_AFTER_NS
    is_silent = silent_at_ns is not None and silent_at_ns <= now.ns
    if state.facts is None and not is_silent:
        return _Wish(settled=False, at_ns=silent_at_ns)
    if is_silent or state.facts is None:
        want, seq = cluster.SILENT, 0 if state.facts is None else state.facts.position.seq
    else:
        want, seq = cluster.wording(state.facts), state.facts.position.seq
    condition = cluster.condition(want, seq, node.condition, now.s)
    if condition is not None:
        return _Wish(settled=False, effect=SetCondition(condition=condition))
    beat_ns = now.ns + cluster.heartbeat_in_s(node.condition, now.s) * SECOND_NS
    at_ns = beat_ns if silent_at_ns is None or is_silent else min(beat_ns, silent_at_ns)
    return _Wish(settled=True, at_ns=at_ns)


def _noded(state: ClusterState, now: ClockReading) -> _Wish:
    """NodeD deletes its ConfigMap where the node is well: its absence does not show that NodeD is absent."""
    if state.noded is None or now.ns >= state.noded_at_ns + LOOK_AGAIN_NS:
        return _Wish(settled=False, effect=ReadObject(target=Target.NODED))
    return _Wish(settled=True, at_ns=state.noded_at_ns + LOOK_AGAIN_NS)


def _info(settings: ClusterSettings, state: ClusterState, target: Target, now: ClockReading) -> _Wish:
    known, facts = state.infos[target], state.facts
    if facts is None or not _answers(state):
        return _Wish(settled=False)
    if not known.fresh:
        return _Wish(settled=False, effect=ReadObject(target=target))
    if known.found is not None and not known.found.is_ours:
        if now.ns >= known.at_ns + LOOK_AGAIN_NS:
            return _Wish(settled=True, effect=ReadObject(target=target))
        return _Wish(settled=True, at_ns=known.at_ns + LOOK_AGAIN_NS)
    return _spaced(state, target, _written(settings, target, known, facts, now), now)


def _written(
    settings: ClusterSettings, target: Target, known: KnownConfigMap, facts: SnapshotFacts, now: ClockReading
) -> _Wish:
    """It is written again when its content changes, or was written long ago."""
    form = device_info if target is Target.DEVICE_INFO else node_info
    made = _made(settings, target, facts, now.s)
    if known.found is None:
        if made is None:
            return _Wish(settled=True)
        config_map = _config_map(settings, target, made, None)
        return _Wish(settled=False, effect=CreateConfigMap(target=target, config_map=config_map))
    version = known.found.resource_version
    if made is None:
        if target is Target.DEVICE_INFO:
            return _Wish(settled=True)
        return _Wish(settled=False, effect=DeleteConfigMap(target=target, resource_version=version))
    written_s = form.written_at_s(known.found.data)
    is_said = written_s is not None and _made(settings, target, facts, written_s) == known.found.data
    left_s = 0 if written_s is None else written_s + form.RENEWED_AFTER_S - now.s
    if is_said and 0 < left_s <= form.RENEWED_AFTER_S:
        return _Wish(settled=True, at_ns=now.ns + left_s * SECOND_NS)
    config_map = _config_map(settings, target, made, version)
    return _Wish(settled=False, effect=ReplaceConfigMap(target=target, config_map=config_map))


def _config_map(
    settings: ClusterSettings, target: Target, data: Mapping[str, str], resource_version: str | None
) -> cluster.Object:
    name, namespace = name_of(settings, target)
    return cluster.config_map(name, namespace, data, resource_version)


def _made(
    settings: ClusterSettings, target: Target, facts: SnapshotFacts, at_s: int
) -> dict[str, str] | None:
    if target is Target.NODE_INFO:
        return node_info.data(facts, at_s=at_s)
    return device_info.data(
        facts, super_pod_id=settings.super_pod_id, server_index=settings.server_index, at_s=at_s
    )


def name_of(settings: ClusterSettings, target: Target) -> tuple[str, str]:
    """Name and namespace of a ConfigMap."""
    form = device_info if target is Target.DEVICE_INFO else node_info
    return f"{form.NAME_PREFIX}{settings.node}", form.NAMESPACE
