"""Follows one node without end: over restarts of its daemon, lost networks, and refusals that are mended.

What came is done before more is taken: while an effect lasts the daemon keeps the rest, which it has on its
disk anyway. It decides nothing; ``state`` says what a message means.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from datetime import UTC, datetime
from typing import Final

from nodeagent.client import AsyncClient, Bookmark, ClientError, Event, Snapshot, received
from nodeagent.client.session import Session, is_final
from nodeagent.fleet import state
from nodeagent.fleet.delivery import Delivery
from nodeagent.fleet.news import News, Received, What, news_of
from nodeagent.fleet.news import received as values_of
from nodeagent.fleet.node_states import NodeStates
from nodeagent.fleet.nodes import Endpoint
from nodeagent.fleet.pace import Pace
from nodeagent.fleet.state import Contact
from nodeagent.messages.pb import fault_service_pb2 as pb

REFUSED_PAUSE_S: Final = 60.0
"""Somebody has to change something, such as a role: nothing that is tried sooner helps."""

Connect = Callable[[Endpoint], AsyncClient]


class Unreadable(Exception):
    """A message of the node has a value that cannot be; it will be sent again and again."""


class Follower:
    """Follows one node on the board. ``run`` ends only by cancellation, or with what a delivery raises."""

    def __init__(
        self, endpoint: Endpoint, *, connect: Connect, pace: Pace, node_states: NodeStates, delivery: Delivery
    ) -> None:
        self._endpoint = endpoint
        self._connect = connect
        self._pace = pace
        self._node_states = node_states
        self._delivery = delivery
        self._done = delivery.position_of(endpoint.name)

    async def run(self) -> None:
        session = Session(after=self._done)
        while True:
            await self._pace.turn()
            refuses, reason = False, "UNAVAILABLE: the daemon ended the stream"
            try:
                async with self._connect(self._endpoint) as client:
                    await self._follow(client, session)
            except ClientError as failure:
                refuses, reason = is_final(failure), str(failure)
            except Unreadable as failure:
                refuses, reason = True, str(failure)
                session = Session(after=self._done)  # it has moved on over what was not done
            await self._put_contact(Contact.REFUSES if refuses else Contact.AWAY, reason)
            await asyncio.sleep(REFUSED_PAUSE_S if refuses else session.next_pause_s())

    async def _follow(self, client: AsyncClient, session: Session) -> None:
        async with aclosing(client.stream(session.request())) as responses:
            async for response in responses:
                with _reading():
                    state.check_store(response.store_id.uuid)
                    values = values_of(session, response)
                is_first = self._node_states.of(self._endpoint).contact is not Contact.ANSWERS
                if is_first:
                    await self._put_contact(Contact.ANSWERS, "", response.node.node_name)
                await self._take(values)
                if _asks_for_the_list(values, is_first=is_first):
                    await self._read_devices(client)

    async def _take(self, values: list[Received]) -> None:
        """The board first, for all of them; then each with its effect, in order."""
        now = self._node_states.of(self._endpoint)
        with _reading():
            for value, _ in values:
                if isinstance(value, Snapshot):
                    now = state.with_devices(now, value.devices, value.position)
                elif isinstance(value, Event):
                    now = state.with_event(now, value)
        self._node_states.put(now)
        for value, message in values:
            if isinstance(value, Bookmark):
                self._delivery.pass_over(self._endpoint.name, value.position)
            else:
                await self._delivery.deliver(
                    News(
                        what=What.EVENT if isinstance(value, Event) else What.STATE,
                        node=now,
                        at=value.at,
                        message=message,
                        value=value,
                        position=value.position,
                    )
                )
            self._done = value.position

    async def _read_devices(self, client: AsyncClient) -> None:
        answer: pb.ListDevicesResponse = await client.call(pb.ListDevicesRequest())
        now = self._node_states.of(self._endpoint)
        with _reading():
            state.check_store(answer.store_id.uuid)
            devices = [received.device(each) for each in answer.devices]
            now = state.with_devices(now, devices, received.position(answer.store_id, answer.seq))
        self._node_states.put(now)

    async def _put_contact(self, contact: Contact, reason: str, said_name: str = "") -> None:
        """On the board, and delivered where it is news. That a node answers for the first time is none."""
        before = self._node_states.of(self._endpoint)
        at = datetime.now(UTC)
        after = state.with_contact(before, contact, reason, at, said_name)
        self._node_states.put(after)
        what = news_of(before.contact, contact)
        if what is not None:
            await self._delivery.deliver(News(what=what, node=after, at=at, reason=reason))


@contextmanager
def _reading() -> Iterator[None]:
    """One node's nonsense must not end the following of all others: a time beyond all years, for example, or
    more devices than there can be (``TooMuch``).
    """
    try:
        yield
    except (ValueError, OverflowError, OSError) as error:
        raise Unreadable(f"what it sends cannot be read: {error}") from error


def _asks_for_the_list(values: list[Received], *, is_first: bool) -> bool:
    """Whether what came leaves open how the devices stand: a stream that only goes on, a device that came."""
    if any(isinstance(value, Snapshot) for value, _ in values):
        return False
    return is_first or any(isinstance(value, Event) and state.changes_the_list(value) for value, _ in values)
