"""Followers in the test's own process, of stages on their unix sockets; what they tell is kept."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from nodeagent.client import EventKind
from nodeagent.fleet.delivery import Execution, NewsDelivery
from nodeagent.fleet.follower import Connect, Fleet, connecting
from nodeagent.fleet.news import News
from nodeagent.fleet.nodes import Endpoint
from nodeagent.fleet.positions import Positions
from nodeagent.fleet.state import NodeState, NodeStates
from tests.waiting import until

LINE: Final = b"{}\n"


class Crew:
    """``shown`` is everything that was shown, in order. Open it with ``crew``."""

    def __init__(self, node_states: NodeStates, fleet: Fleet, shown: list[News]) -> None:
        self.node_states = node_states
        self.shown = shown
        self._fleet = fleet

    def follow(self, *endpoints: Endpoint) -> None:
        self._fleet.follow(endpoints)

    def seqs(self, node: str) -> list[int]:
        """Of its events."""
        return [
            news.position.seq
            for news in self.shown
            if news.node.endpoint.name == node and news.what == "event" and news.position
        ]

    def whats(self, node: str) -> list[str]:
        return [str(news.what) for news in self.shown if news.node.endpoint.name == node]

    def of(self, node: str) -> NodeState:
        return self.node_states.states[node]

    async def until_events(self, node: str, *seqs: int) -> None:
        await until(lambda: self.seqs(node) == list(seqs), f"{node}: {seqs}")


def at(name: str, socket: Path) -> Endpoint:
    return Endpoint(name=name, address=str(socket))


@asynccontextmanager
async def crew(
    *endpoints: Endpoint,
    positions: Positions | None = None,
    execution: Execution | None = None,
    kinds: Collection[EventKind] = (),
    connect: Connect | None = None,
) -> AsyncIterator[Crew]:
    node_states, shown = NodeStates(), list[News]()

    async def show(news: News) -> None:
        shown.append(news)

    def encode(_news: News) -> bytes:
        return LINE

    async def run(opened: "asyncio.Future[Crew]") -> None:
        async with asyncio.TaskGroup() as group:
            delivery = NewsDelivery(
                show=show, encode=encode, kinds=kinds, execution=execution, positions=positions
            )
            fleet = Fleet(
                group, node_states=node_states, delivery=delivery, connect=connect or connecting(None)
            )
            followers = Crew(node_states, fleet, shown)
            followers.follow(*endpoints)
            opened.set_result(followers)
            await asyncio.Event().wait()

    opened: asyncio.Future[Crew] = asyncio.get_running_loop().create_future()
    running = asyncio.create_task(run(opened))
    try:
        yield await opened
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
