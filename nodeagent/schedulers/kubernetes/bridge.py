"""Follows the daemon and this node's object, and does what ``decide`` says, one order after another.

What comes from both goes into one queue. Whatever breaks is followed anew; the state is read again, so that
nothing depends on having seen each event.
"""

import asyncio
import logging
import random
import time
from contextlib import aclosing, suppress
from typing import Final

from kubernetes.aio.client import ApiClient

from nodeagent.client import AsyncClient, ClientError, Snapshot
from nodeagent.schedulers.kubernetes import say
from nodeagent.schedulers.kubernetes.api_server import ApiServer
from nodeagent.schedulers.kubernetes.decide import decide
from nodeagent.schedulers.kubernetes.facts import facts_of
from nodeagent.schedulers.kubernetes.node_watch import NodeWatch
from nodeagent.schedulers.kubernetes.orders import Ack, Order
from nodeagent.schedulers.kubernetes.state import (
    SECOND_NS,
    Done,
    Failed,
    Given,
    Moment,
    Reported,
    Settings,
    Silent,
    State,
    Tick,
    taken,
)
from nodeagent.schedulers.tasks import run_together

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
            for words in say.learnt(before, self._state):
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
        if isinstance(result, Done) and (words := say.done(order)):
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
