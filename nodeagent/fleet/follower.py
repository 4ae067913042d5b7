"""Follows nodes without end: over restarts of their daemons, lost networks, and refusals that are repaired.

Each node has a task of its own. What was received is done before more is taken: while an effect lasts the
daemon keeps the rest, which it has on its disk. Nothing is decided here; ``state`` has the meaning of a
message.
"""

import asyncio
import resource
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from datetime import UTC, datetime
from typing import Final

from nodeagent.client import AsyncClient, Bookmark, ClientError, Event, Snapshot, received
from nodeagent.client.session import WatchSession, is_final
from nodeagent.fleet import state
from nodeagent.fleet.credentials import Credentials
from nodeagent.fleet.delivery import NewsDelivery
from nodeagent.fleet.news import News, Received, What, news_of, received_values
from nodeagent.fleet.nodes import Endpoint
from nodeagent.fleet.state import Contact, NodeStates
from nodeagent.messages.pb import fault_service_pb2 as pb

ATTEMPTS_A_SECOND: Final = 250.0


class ConnectPace:
    """How fast connections are begun: not to all nodes at once where a network comes back.

    A TLS handshake takes a millisecond or two of a processor on this side alone. Attempts are admitted in the
    order in which they asked.
    """

    def __init__(self, a_second: float = ATTEMPTS_A_SECOND) -> None:
        self._interval_s = 1 / a_second
        self._next_s = 0.0

    async def wait(self) -> None:
        now_s = asyncio.get_running_loop().time()
        await asyncio.sleep(self.given_at_s(now_s) - now_s)

    def given_at_s(self, now_s: float) -> float:
        """When the attempt that asks now may begin; that time is then taken."""
        at_s = max(now_s, self._next_s)
        self._next_s = at_s + self._interval_s
        return at_s


REFUSED_PAUSE_S: Final = 60.0
"""Something has to be changed, such as a role: trying again sooner does not help."""

Connect = Callable[[Endpoint], AsyncClient]


class UnreadableMessage(Exception):
    """A message of the node has an impossible value; it will be sent again and again."""


class NodeFollower:
    """Follows one node. ``run`` ends only by cancellation, or with what a delivery raises."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        connect: Connect,
        pace: ConnectPace,
        node_states: NodeStates,
        delivery: NewsDelivery,
    ) -> None:
        self._endpoint = endpoint
        self._connect = connect
        self._pace = pace
        self._node_states = node_states
        self._delivery = delivery
        self._done = delivery.position_of(endpoint.name)

    async def run(self) -> None:
        session = WatchSession(after=self._done)
        while True:
            await self._pace.wait()
            refuses, reason = False, "UNAVAILABLE: the daemon ended the stream"
            try:
                async with self._connect(self._endpoint) as client:
                    await self._follow(client, session)
            except ClientError as failure:
                refuses, reason = is_final(failure), str(failure)
            except UnreadableMessage as failure:
                refuses, reason = True, str(failure)
                session = WatchSession(after=self._done)  # it has moved on over what was not done
            await self._put_contact(Contact.REFUSES if refuses else Contact.AWAY, reason)
            await asyncio.sleep(REFUSED_PAUSE_S if refuses else session.next_pause_s())

    async def _follow(self, client: AsyncClient, session: WatchSession) -> None:
        async with aclosing(client.stream(session.request())) as responses:
            async for response in responses:
                self._node_states.heard_at[self._endpoint.name] = datetime.now(UTC)
                with _reading():
                    state.check_store(response.store_id.uuid)
                    values = received_values(session, response)
                is_first = self._node_states.of(self._endpoint).contact is not Contact.ANSWERS
                if is_first:
                    await self._put_contact(Contact.ANSWERS, "", response.node.node_name)
                await self._take(values)
                if _asks_for_the_list(values, is_first=is_first):
                    await self._read_devices(client)

    async def _take(self, values: list[Received]) -> None:
        """The states first, for all of them; then each value with its effect, in order."""
        now = self._node_states.of(self._endpoint)
        with _reading():
            for value, _ in values:
                if isinstance(value, Snapshot):
                    now = state.with_devices(now, value.devices, value.position, value.conditions)
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
        """Put the state, and deliver the change where it is to be reported."""
        before = self._node_states.of(self._endpoint)
        at = datetime.now(UTC)
        after = state.with_contact(before, contact, reason, at, said_name)
        self._node_states.put(after)
        what = news_of(before.contact, contact)
        if what is not None:
            await self._delivery.deliver(News(what=what, node=after, at=at, reason=reason))


@contextmanager
def _reading() -> Iterator[None]:
    """An invalid value of one node must not end the following of the others: a time outside of the calendar,
    for example, or more devices than there can be (``TooMuch``).
    """
    try:
        yield
    except (ValueError, OverflowError, OSError) as error:
        raise UnreadableMessage(f"what it sends cannot be read: {error}") from error


def _asks_for_the_list(values: list[Received], *, is_first: bool) -> bool:
    """Whether the values leave the devices unknown: a stream that only continues, or a new device."""
    if any(isinstance(value, Snapshot) for value, _ in values):
        return False
    return is_first or any(isinstance(value, Event) and state.changes_the_list(value) for value, _ in values)


_KEEPALIVE: Final[dict[str, str | int]] = {"grpc.keepalive_time_ms": 60_000}
"""With thousands of connections the library's own 20 s would cost more than the events."""

_FILES_IN_ADDITION: Final = 200
"""Open files in addition to connections: commands that run, the libraries' own."""


class Fleet:
    """All nodes of a list, each followed as long as it is on the list.

    It needs a task group, which ends with what a delivery raises. ``follow`` may be called again.
    """

    def __init__(
        self, group: asyncio.TaskGroup, *, node_states: NodeStates, delivery: NewsDelivery, connect: Connect
    ) -> None:
        self._group = group
        self._node_states = node_states
        self._delivery = delivery
        self._connect = connect
        self._pace = ConnectPace()
        self._following: dict[Endpoint, asyncio.Task[None]] = {}

    def follow(self, endpoints: tuple[Endpoint, ...]) -> None:
        """Follow these nodes and no others. A node that is followed already is not disturbed."""
        gone = self._following.keys() - set(endpoints)
        ending = {endpoint.name: self._following.pop(endpoint) for endpoint in gone}
        for task in ending.values():
            task.cancel()
        self._node_states.remove(gone)
        for endpoint in endpoints:
            if endpoint not in self._following:
                self._node_states.list(endpoint)
                follower = NodeFollower(
                    endpoint,
                    connect=self._connect,
                    pace=self._pace,
                    node_states=self._node_states,
                    delivery=self._delivery,
                )
                self._following[endpoint] = self._group.create_task(
                    _after(ending.get(endpoint.name), follower)
                )


async def _after(ending: asyncio.Task[None] | None, follower: NodeFollower) -> None:
    """Follow a node whose address has changed, once the command that still runs for it has ended."""
    if ending is not None:
        await asyncio.wait([ending])
    await follower.run()


def connecting(credentials: Credentials | None, **grpc_options: str | int) -> Connect:
    """A client for a node: on its unix socket, or over TCP with the present certificate."""
    given = {**_KEEPALIVE, **{f"grpc.{name}": value for name, value in grpc_options.items()}}

    def connect(endpoint: Endpoint) -> AsyncClient:
        if endpoint.is_local or credentials is None:
            return AsyncClient(endpoint.address, options=given)
        options = {**given}
        if endpoint.certificate_name:
            options["grpc.ssl_target_name_override"] = endpoint.certificate_name
        return AsyncClient(endpoint.address, credentials.current(), options=options)

    return connect


def files_missing(nodes: int) -> int:
    """Raises the limit of open files as far as possible; returns how many are missing for so many nodes.

    There is always a limit: the kernel has one for all processes (nr_open in proc(5)).
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return max(0, nodes + _FILES_IN_ADDITION - hard)
