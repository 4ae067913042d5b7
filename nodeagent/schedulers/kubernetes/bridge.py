"""The Kubernetes bridge: follows the daemon and this node's object, and does what ``decide`` orders, one by
one.

Inputs of both come through one queue. A connection that breaks is opened again, and the state is read again,
so that nothing depends on having seen each event. The log has each fact once: what stays as it is, is not
repeated.
"""

import asyncio
import logging
import random
import time
from collections.abc import Iterable, Sequence
from contextlib import aclosing, suppress
from typing import Final

from kubernetes.aio.client import ApiClient

from nodeagent.client import AsyncClient, ClientError, Snapshot
from nodeagent.schedulers.kubernetes.api_server import ApiServer
from nodeagent.schedulers.kubernetes.cluster import is_ours
from nodeagent.schedulers.kubernetes.decide import decide
from nodeagent.schedulers.kubernetes.facts import facts_of
from nodeagent.schedulers.kubernetes.node_watch import NodeWatch
from nodeagent.schedulers.kubernetes.state import (
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
    ReplaceConfigMap,
    RequestDone,
    RequestFailed,
    SetCondition,
    SetTaints,
    taken,
)
from nodeagent.schedulers.loop import BridgeLoop, Decision, LoopTick, run_together

log = logging.getLogger(__name__)

CONSUMER: Final = "kubernetes"
"""The name under which the daemon keeps how far the cluster has come."""

ASK_AGAIN_S: Final = 30.0
ANSWER_LIMIT_S: Final = 10.0
BETWEEN_STATES_S: Final = 0.2
"""A storm of events is read as few states."""


class KubernetesBridge:
    """``run`` ends only with an error that trying again cannot help, or when it is cancelled."""

    def __init__(self, daemon: AsyncClient, cluster: ApiClient, settings: ClusterSettings) -> None:
        self._daemon = daemon
        self._settings = settings
        self._api_server = ApiServer(cluster, settings)
        self._loop = BridgeLoop[ClusterState, ClusterInput, ClusterEffect](
            ClusterState(), self._decide, self._perform, _log_news
        )
        self._watch = NodeWatch(cluster, settings.node, self._loop.give)
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Raises ``ClientError`` where the daemon refuses to be followed."""
        await run_together(self._follow(), self._ask(), self._watch.run(), self._loop.run())

    async def _follow(self) -> None:
        """Each event only means that the state is to be read again: no position is needed, nor a name."""
        async with aclosing(self._daemon.watch()) as updates:
            async for _ in updates:
                self._changed.set()

    async def _ask(self) -> None:
        """The whole state after each change, and from time to time, so that a silent daemon is noticed."""
        while True:
            self._changed.clear()
            try:
                async with asyncio.timeout(ANSWER_LIMIT_S):
                    self._loop.give(FactsReported(facts=facts_of(await self._snapshot())))
            except TimeoutError:
                self._loop.give(DaemonSilent())
            await asyncio.sleep(BETWEEN_STATES_S)
            with suppress(TimeoutError):
                async with asyncio.timeout(ASK_AGAIN_S):
                    await self._changed.wait()

    async def _snapshot(self) -> Snapshot:
        async with aclosing(self._daemon.watch(snapshot="always")) as updates:
            async for update in updates:
                if isinstance(update, Snapshot):
                    return update
        raise ClientError("INTERNAL", "the daemon sent no state")

    def _decide(
        self, state: ClusterState, given: Sequence[ClusterInput | LoopTick]
    ) -> Decision[ClusterState, ClusterEffect]:
        now = ClockReading(ns=time.monotonic_ns(), s=int(time.time()))
        for each in given[:-1]:
            state = taken(self._settings, state, each, now)
        return decide(self._settings, state, given[-1], now)

    async def _perform(self, effect: ClusterEffect) -> ClusterInput:
        if isinstance(effect, Ack):
            return await self._acknowledged(effect)
        result = await self._api_server.perform(effect)
        if isinstance(result, RequestDone) and (text := done_text(effect)):
            log.info("%s", text)
        return result

    async def _acknowledged(self, effect: Ack) -> ClusterInput:
        """Where the daemon does not take it, its state is read again: its numbers may begin again by now."""
        try:
            await self._daemon.ack(CONSUMER, effect.position)
        except ClientError as failure:
            self._changed.set()
            return RequestFailed(effect=effect, status=0, reason=str(failure), jitter=random.random())
        return RequestDone(effect=effect)


def _log_news(before: ClusterState, after: ClusterState, _given: Sequence[ClusterInput | LoopTick]) -> None:
    for text in learnt_texts(before, after):
        log.warning("%s", text)


def done_text(effect: ClusterEffect) -> str:
    """What was done, for the log; "" for an effect that only reads."""
    match effect:
        case SetTaints(taints=taints):
            ours = next((each for each in taints if is_ours(each)), None)
            if ours is None:
                return "removed the taint from the Node"
            return f"tainted the Node: {ours['key']}={ours.get('value', '')}:{ours['effect']}"
        case SetCondition(condition=condition):
            return f"{condition['type']} is {condition['status']}: {condition['message']}"
        case CreateConfigMap(target=target) | ReplaceConfigMap(target=target):
            return f"wrote the {target}"
        case DeleteConfigMap(target=target):
            return f"deleted the {target}"
        case _:
            return ""


def learnt_texts(before: ClusterState, after: ClusterState) -> Iterable[str]:
    """What else writes these objects, and what does not work."""
    for target, known in after.infos.items():
        is_foreign = known.found is not None and not known.found.is_ours
        earlier = before.infos[target].found
        was_foreign = earlier is not None and not earlier.is_ours
        if is_foreign and not was_foreign:
            yield (
                f"the {target} is another's, as MindCluster's own plug-in writes it: left alone;"
                " delete it once that plug-in is gone, and it is written from here"
            )
    if after.noded and not before.noded:
        yield "MindCluster's DaemonSet noded is installed: its ConfigMap mindx-dl-nodeinfo is left alone"
    if after.node_is_fresh and after.node is None and (before.node is not None or not before.node_is_fresh):
        yield "there is no Node of this name; check [kubernetes] node, or wait until the kubelet registers it"
    for target, trouble in after.troubles.items():
        known_trouble = before.troubles.get(target)
        if known_trouble is None or known_trouble.reason != trouble.reason:
            yield f"{target}: {trouble.reason}; it is tried again"
    for target in before.troubles.keys() - after.troubles.keys():
        yield f"{target}: works again"
