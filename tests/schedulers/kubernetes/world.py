"""A cluster of values: the decisions are played against it, without a server and without waiting.

It keeps versions as the API server does, and refuses what is of an old one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nodeagent.schedulers.kubernetes.cluster import MARK, TAINT, WRITER, InfoObject, NodeObject, Object
from nodeagent.schedulers.kubernetes.decide import decide
from nodeagent.schedulers.kubernetes.facts import SnapshotFacts
from nodeagent.schedulers.kubernetes.state import (
    CONFLICT,
    NOT_FOUND,
    SECOND_NS,
    Ack,
    ClockReading,
    ClusterEffect,
    ClusterInput,
    ClusterSettings,
    ClusterState,
    CreateConfigMap,
    DaemonSilent,
    DeleteConfigMap,
    FactsReported,
    ObjectSeen,
    ReadObject,
    ReplaceConfigMap,
    RequestDone,
    RequestFailed,
    SetCondition,
    SetTaints,
    Target,
)
from nodeagent.schedulers.loop import LoopTick
from tests.schedulers.kubernetes.snapshots import AT_S

SETTINGS = ClusterSettings(
    node="node-1",
    scope="chip",
    resume_after_ns=60 * SECOND_NS,
    device_info=False,
    node_info=False,
    super_pod_id=-1,
    server_index=-1,
)
BEGINS_NS = 10**15
Fails = Callable[[ClusterEffect], int]
"""The status with which an order fails, 0: it is done."""


@dataclass(kw_only=True)
class World:
    """``orders`` are those that were tried, ``infos`` the ConfigMaps. ``fails`` may be set to refuse some.
    ``strips``: an admission webhook takes away what is written to the Node.
    """

    settings: ClusterSettings = SETTINGS
    taints: tuple[Object, ...] = ()
    condition: Object | None = None
    infos: dict[Target, InfoObject] = field(default_factory=dict)
    noded: bool = False
    fails: Fails = lambda _: 0
    strips: bool = False
    orders: list[ClusterEffect] = field(default_factory=list)
    state: ClusterState = field(default_factory=ClusterState)
    now: ClockReading = field(default_factory=lambda: ClockReading(ns=BEGINS_NS, s=AT_S))
    wake_ns: int | None = None
    acked: int = 0
    _version: int = 100
    _nodes_version: int = 100

    def hear(self, facts: SnapshotFacts) -> None:
        self.given(FactsReported(facts=facts))

    def be_silent(self) -> None:
        self.given(DaemonSilent())

    def given(self, given: ClusterInput | LoopTick) -> None:
        """Decide on it, and do all that is ordered."""
        next_given: ClusterInput | LoopTick | None = given
        for _ in range(100):
            assert next_given is not None
            decision = decide(self.settings, self.state, next_given, self.now)
            self.state, self.wake_ns = decision.state, decision.wake_ns
            if decision.effect is None:
                return
            self.orders.append(decision.effect)
            next_given = self._do(decision.effect)
        raise AssertionError(f"it never rests: {self.orders[-4:]}")

    def pass_time(self, seconds: int) -> None:
        """Awake whenever the decisions want to be."""
        end_ns = self.now.ns + seconds * SECOND_NS
        while self.wake_ns is not None and self.wake_ns <= end_ns:
            self._at(max(self.wake_ns, self.now.ns))
            self.given(LoopTick())
        self._at(end_ns)
        self.given(LoopTick())

    def restart(self) -> None:
        """The bridge begins anew; the cluster stays."""
        self.state, self.wake_ns = ClusterState(), None

    def another_writes_the_node(self, **parts: Any) -> None:
        """And the watch has not said so yet."""
        self._version += 1
        self._nodes_version = self._version
        for name, value in parts.items():
            setattr(self, name, value)

    def another_writes(self, target: Target, data: Mapping[str, str]) -> None:
        """A ConfigMap, as MindCluster's own writer."""
        self._version += 1
        self.infos[target] = InfoObject(resource_version=str(self._version), data=data, is_ours=False)

    def watch_reports(self) -> None:
        self.given(ObjectSeen(target=Target.NODE, found=self.node))

    @property
    def node(self) -> NodeObject:
        return NodeObject(
            resource_version=str(self._nodes_version), taints=self.taints, condition=self.condition
        )

    @property
    def our_taints(self) -> list[object]:
        return [each.get("value") for each in self.taints if each["key"] == TAINT]

    def kinds(self) -> list[str]:
        """Of the orders since it was asked last."""
        kinds = [f"{type(order).__name__} {order.target.name}" for order in self.orders]
        self.orders.clear()
        return kinds

    def _at(self, ns: int) -> None:
        self.now = ClockReading(ns=ns, s=AT_S + (ns - BEGINS_NS) // SECOND_NS)

    def _do(self, order: ClusterEffect) -> ClusterInput:
        if status := self.fails(order):
            return RequestFailed(effect=order, status=status, reason=f"{status}", jitter=0.0)
        match order:
            case Ack(position=position):
                self.acked = position.seq
                return RequestDone(effect=order)
            case ReadObject(target=Target.NODE):
                return RequestDone(effect=order, found=self.node)
            case ReadObject(target=Target.NODED):
                return RequestDone(effect=order, found=self.noded)
            case ReadObject(target=target):
                return RequestDone(effect=order, found=self.infos.get(target))
            case SetTaints(resource_version=version, taints=taints):
                if version != str(self._nodes_version):
                    return RequestFailed(effect=order, status=CONFLICT, reason="409", jitter=0.0)
                self.another_writes_the_node(taints=self.taints if self.strips else tuple(taints))
                return RequestDone(effect=order, found=self.node)
            case SetCondition(condition=condition):
                self.another_writes_the_node(condition=self.condition if self.strips else condition)
                return RequestDone(effect=order, found=self.node)
            case _:
                return self._write(order)

    def _write(self, order: CreateConfigMap | ReplaceConfigMap | DeleteConfigMap) -> ClusterInput:
        standing = self.infos.get(order.target)
        if isinstance(order, CreateConfigMap):
            if standing is not None:
                return RequestFailed(effect=order, status=CONFLICT, reason="409", jitter=0.0)
        elif standing is None:
            return RequestFailed(effect=order, status=NOT_FOUND, reason="404", jitter=0.0)
        elif self._version_in(order) != standing.resource_version:
            return RequestFailed(effect=order, status=CONFLICT, reason="409", jitter=0.0)
        else:
            assert standing.is_ours, f"another's ConfigMap: {order}"
        self._version += 1
        if isinstance(order, DeleteConfigMap):
            del self.infos[order.target]
            return RequestDone(effect=order, found=None)
        written: Any = order.config_map
        assert written["metadata"]["annotations"] == {MARK: WRITER}
        self.infos[order.target] = InfoObject(
            resource_version=str(self._version), data=written["data"], is_ours=True
        )
        return RequestDone(effect=order, found=self.infos[order.target])

    def _version_in(self, order: ReplaceConfigMap | DeleteConfigMap) -> str:
        if isinstance(order, DeleteConfigMap):
            return order.resource_version
        config_map: Any = order.config_map
        return str(config_map["metadata"]["resourceVersion"])
