"""The present state of every node that is followed, for those who show it. It keeps no history."""

import asyncio
from collections.abc import Iterable, Mapping

from nodeagent.fleet.nodes import Endpoint
from nodeagent.fleet.state import Contact, NodeState


class NodeStates:
    """``changed`` is set with each change; who waits for it clears it. ``version`` counts the changes."""

    def __init__(self) -> None:
        self._states: dict[str, NodeState] = {}
        self._unknown: set[str] = set()
        self.changed = asyncio.Event()
        self.version = 0

    @property
    def states(self) -> Mapping[str, NodeState]:
        """The state of each node, by its name."""
        return self._states

    @property
    def all_known(self) -> bool:
        """Whether each node has said how its devices stand, or is known not to answer."""
        return not self._unknown

    def list(self, endpoint: Endpoint) -> None:
        self.put(NodeState(endpoint=endpoint))

    def of(self, endpoint: Endpoint) -> NodeState:
        return self._states[endpoint.name]

    def put(self, state: NodeState) -> None:
        """The same state again is no change."""
        name = state.endpoint.name
        if self._states.get(name) is state:
            return
        self._states[name] = state
        if state.parts or state.contact in (Contact.AWAY, Contact.REFUSES):
            self._unknown.discard(name)
        else:
            self._unknown.add(name)
        self._change()

    def remove(self, endpoints: Iterable[Endpoint]) -> None:
        for endpoint in endpoints:
            del self._states[endpoint.name]
            self._unknown.discard(endpoint.name)
        self._change()

    def _change(self) -> None:
        self.version += 1
        self.changed.set()
