"""All nodes of a list, each followed by a task of its own, as long as it is on the list."""

import asyncio
import resource
from typing import Final

from nodeagent.client import AsyncClient
from nodeagent.fleet.credentials import Credentials
from nodeagent.fleet.delivery import Delivery
from nodeagent.fleet.follower import Connect, Follower
from nodeagent.fleet.node_states import NodeStates
from nodeagent.fleet.nodes import Endpoint
from nodeagent.fleet.pace import Pace

_KEEPALIVE: Final = {"grpc.keepalive_time_ms": 60_000}
"""With thousands of connections the library's own 20 s would cost more than the events."""

_FILES_BESIDE: Final = 200
"""Open files beside connections: commands that run, the libraries' own."""


class Fleet:
    """Use it in a task group: what a delivery raises ends that. ``follow`` may be called again."""

    def __init__(
        self, group: asyncio.TaskGroup, *, node_states: NodeStates, delivery: Delivery, connect: Connect
    ) -> None:
        self._group = group
        self._node_states = node_states
        self._delivery = delivery
        self._connect = connect
        self._pace = Pace()
        self._following: dict[Endpoint, asyncio.Task[None]] = {}

    def follow(self, endpoints: tuple[Endpoint, ...]) -> None:
        """Those and no others. Who is followed already goes on undisturbed."""
        gone = self._following.keys() - set(endpoints)
        ending = {endpoint.name: self._following.pop(endpoint) for endpoint in gone}
        for task in ending.values():
            task.cancel()
        self._node_states.remove(gone)
        for endpoint in endpoints:
            if endpoint not in self._following:
                self._node_states.list(endpoint)
                follower = Follower(
                    endpoint,
                    connect=self._connect,
                    pace=self._pace,
                    node_states=self._node_states,
                    delivery=self._delivery,
                )
                self._following[endpoint] = self._group.create_task(
                    _after(ending.get(endpoint.name), follower)
                )


async def _after(ending: asyncio.Task[None] | None, follower: Follower) -> None:
    """Begin to follow a node whose address has changed: the command that still runs for it ends first."""
    if ending is not None:
        await asyncio.wait([ending])
    await follower.run()


def connecting(credentials: Credentials | None) -> Connect:
    """A client for a node: on its unix socket, or over TCP with the certificate that is good now."""

    def connect(endpoint: Endpoint) -> AsyncClient:
        if endpoint.is_local or credentials is None:
            return AsyncClient(endpoint.address, options=_KEEPALIVE)
        options: dict[str, str | int] = {**_KEEPALIVE}
        if endpoint.certificate_name:
            options["grpc.ssl_target_name_override"] = endpoint.certificate_name
        return AsyncClient(endpoint.address, credentials.current(), options=options)

    return connect


def files_missing(nodes: int) -> int:
    """Raises the limit of open files as far as it goes; by how much that is too little for so many nodes.

    It is never without limit: the kernel has one for all processes (nr_open in proc(5)).
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return max(0, nodes + _FILES_BESIDE - hard)
