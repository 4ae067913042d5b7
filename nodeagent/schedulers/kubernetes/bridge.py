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
from collections.abc import Iterable
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
    SECOND_NS,
    Ack,
    Create,
    Delete,
    Done,
    Failed,
    Given,
    Moment,
    Order,
    Replace,
    Reported,
    SetCondition,
    SetTaints,
    Settings,
    Silent,
    State,
    Tick,
    taken,
)
from nodeagent.schedulers.tasks import run_together


def done_text(order: Order) -> str:
    """ "" for what only reads."""
    match order:
        case SetTaints(taints=taints):
            ours = next((each for each in taints if is_ours(each)), None)
            if ours is None:
                return "removed the taint from the Node"
            return f"tainted the Node: {ours['key']}={ours.get('value', '')}:{ours['effect']}"
        case SetCondition(condition=condition):
            return f"{condition['type']} is {condition['status']}: {condition['message']}"
        case Create(target=target) | Replace(target=target):
            return f"wrote the {target}"
        case Delete(target=target):
            return f"deleted the {target}"
        case _:
            return ""


def learnt_texts(before: State, after: State) -> Iterable[str]:
    """Who else writes, and what does not work."""
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
        if known_trouble is None or known_trouble.words != trouble.words:
            yield f"{target}: {trouble.words}; it is tried again"
    for target in before.troubles.keys() - after.troubles.keys():
        yield f"{target}: works again"


log = logging.getLogger(__name__)

CONSUMER: Final = "kubernetes"
"""The name under which the daemon keeps how far the cluster has come."""

ASK_AGAIN_S: Final = 30.0
ANSWER_LIMIT_S: Final = 10.0
BETWEEN_STATES_S: Final = 0.2
"""A storm of events is read as few states."""


class Bridge:
    """``run`` ends only with an error that trying again cannot help, or when it is cancelled."""

    def __init__(self, daemon: AsyncClient, cluster: ApiClient, settings: Settings) -> None:
        self._daemon = daemon
        self._settings = settings
        self._api_server = ApiServer(cluster, settings)
        self._watch = NodeWatch(cluster, settings.node, self._give)
        self._given: asyncio.Queue[Given] = asyncio.Queue()
        self._changed = asyncio.Event()
        self._state = State()

    async def run(self) -> None:
        """Raises ``ClientError`` where the daemon does not let us follow."""
        await run_together(self._follow(), self._ask(), self._watch.run(), self._act())

    def _give(self, given: Given) -> None:
        self._given.put_nowait(given)

    async def _follow(self) -> None:
        """Each event only says that the state is to be read again: no position is needed, nor the name."""
        async with aclosing(self._daemon.watch()) as updates:
            async for _ in updates:
                self._changed.set()

    async def _ask(self) -> None:
        """The whole state after each change, and every now and then, so that a silent daemon is noticed."""
        while True:
            self._changed.clear()
            try:
                async with asyncio.timeout(ANSWER_LIMIT_S):
                    self._give(Reported(facts=facts_of(await self._snapshot())))
            except TimeoutError:
                self._give(Silent())
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

    async def _act(self) -> None:
        """Does one order after another. What came meanwhile counts for the next: the last state matters."""
        given = await self._next(None)
        while True:
            before, now = self._state, _now()
            state = before
            while not self._given.empty():
                state, given = taken(self._settings, state, given, now), self._given.get_nowait()
            decision = decide(self._settings, state, given, now)
            self._state = decision.state
            for words in learnt_texts(before, self._state):
                log.warning("%s", words)
            if decision.order is None:
                given = await self._next(decision.wake_ns)
            else:
                given = await self._do(decision.order)

    async def _next(self, wake_ns: int | None) -> Given:
        """What came, or that it is time."""
        wait_s = None if wake_ns is None else max(0.0, (wake_ns - _now().ns) / SECOND_NS)
        try:
            async with asyncio.timeout(wait_s):
                return await self._given.get()
        except TimeoutError:
            return Tick()

    async def _do(self, order: Order) -> Given:
        if isinstance(order, Ack):
            return await self._acknowledged(order)
        result = await self._api_server.do(order)
        if isinstance(result, Done) and (words := done_text(order)):
            log.info("%s", words)
        return result

    async def _acknowledged(self, order: Ack) -> Given:
        """A daemon that does not take it is asked for its state anew: it may count anew by now."""
        try:
            await self._daemon.ack(CONSUMER, order.position)
        except ClientError as failure:
            self._changed.set()
            return Failed(order=order, status=0, words=str(failure), jitter=random.random())
        return Done(order=order)


def _now() -> Moment:
    return Moment(ns=time.monotonic_ns(), s=int(time.time()))
