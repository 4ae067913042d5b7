"""What the functions that serve operators' calls are given, and what they give back.

Each serves one method of ControlService, which audits what is returned or refused.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

from google.protobuf.message import Message

from nodeagent.api import messages
from nodeagent.api.node import NodeFacts
from nodeagent.api.refusal import Refusal, Status
from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.machines.reset_refusal import DryRun
from nodeagent.core.model import Answer, Input, Operator, PublicFaults, Refused
from nodeagent.messages.pb import types_pb2
from nodeagent.store.event_feed import EventFeed
from nodeagent.store.records import Taken

_STATUS: Final = {
    Refused.UNKNOWN: Status.NOT_FOUND,
    Refused.NO_ROOM: Status.RESOURCE_EXHAUSTED,
    Refused.NOT_POSSIBLE: Status.FAILED_PRECONDITION,
}


class Ask(Protocol):
    """Steps inputs in one commit and returns what became of them, once that is published."""

    def __call__(self, *inputs: Input) -> Awaitable[Taken]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """``message`` is the answer, ``result`` what the audit log says. ``taken`` is what became of an order:
    its answer has the fields ``durable`` and ``not_durable_reason``, which are filled in from it.
    """

    message: Message
    result: str
    taken: Taken | None = None


@dataclass(frozen=True, kw_only=True)
class Context:
    """``catalog`` gives the one in force. ``dry_run_reset`` says what an order to reset the device of that
    id, once or not, would do now; None: it is no longer there. ``cannot_reset`` says why nothing here could
    do a reset, "" if nothing says so. ``configured_in``: the file that sets a key.
    """

    feed: EventFeed
    catalog: Callable[[], Catalog]
    facts: NodeFacts
    ask: Ask
    dry_run_reset: Callable[[str, bool], DryRun | None]
    cannot_reset: Callable[[], str] = str
    configured_in: Callable[[str], str] = str

    @cached_property
    def node(self) -> types_pb2.NodeIdentity:
        return messages.node_identity(self.facts)

    async def order(self, order: Operator | PublicFaults) -> tuple[Answer, Taken]:
        """Give the core what it answers. Raises Refusal with the core's own words."""
        taken = await self.ask(order)
        answer = taken.answer
        if answer is None:
            what = order.what if isinstance(order, Operator) else type(order).__name__
            raise AssertionError(f"the core does not answer {what!r}")
        if answer.refused is not None:
            raise Refusal(_STATUS[answer.refused], self.with_file(answer.reason, answer.setting))
        return answer, taken

    def with_file(self, reason: str, setting: str) -> str:
        """The core's words, and the file in which the setting stands that they are about: it knows none."""
        return f"{reason} ({setting} is in {self.configured_in(setting)})" if setting else reason
