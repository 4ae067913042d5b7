"""The page of one follower: wires its parts. It decides nothing."""

import asyncio

from nodeagent.fleet.credentials import Credentials
from nodeagent.fleet.follower import connecting
from nodeagent.fleet.page.answers import PageAnswers
from nodeagent.fleet.page.changes import FleetChanges
from nodeagent.fleet.page.listening import PageAddress, PageCertificates
from nodeagent.fleet.page.questions import DeviceQuestions, Explain
from nodeagent.fleet.page.server import PageServer
from nodeagent.fleet.state import NodeStates

MAX_ANSWER_BYTES = 8 << 20
"""Of a node that is asked why: its whole state is in it."""


class Page:
    """Listens from the start; ``run`` serves. Raises ``ListenError``."""

    def __init__(
        self, address: PageAddress, node_states: NodeStates, credentials: Credentials | None, explain: Explain
    ) -> None:
        certificates = None if address.certificates is None else PageCertificates(address.certificates)
        self._listeners = address.listeners()
        self.url = address.url(self._listeners[0].getsockname()[1])
        questions = DeviceQuestions(
            connecting(credentials, max_receive_message_length=MAX_ANSWER_BYTES), explain
        )
        self._changes = FleetChanges(node_states)
        answers = PageAnswers(
            node_states=node_states,
            changes=self._changes,
            questions=questions,
            host=address.host if certificates is None else None,
        )
        self._server = PageServer(answers, None if certificates is None else certificates.current)

    async def run(self) -> None:
        """Until it is cancelled; then nothing listens any more."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._changes.run())
            group.create_task(self._server.run(self._listeners))
