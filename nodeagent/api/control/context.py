"""What the functions that serve operators' calls are given, and what they return.

Each serves one method of ControlService, which audits the result or the refusal.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

from google.protobuf.message import Message

from nodeagent.api import messages
from nodeagent.api.messages import NodeFacts
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
    """Steps inputs in one commit and returns their results, once these are published."""

    def __call__(self, *inputs: Input) -> Awaitable[Taken]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """``message`` is the answer, ``result`` the text for the audit log. ``taken`` is the result of an order:
    the fields ``durable`` and ``not_durable_reason`` of its answer are filled in from it.
    """

    message: Message
    result: str
    taken: Taken | None = None


@dataclass(frozen=True, kw_only=True)
class Context:
    """``catalog`` gives the one in force. ``dry_run_reset`` gives what an order to reset the device of that
    id, once or not, would do now; None: the device is gone. ``cannot_reset`` gives why no reset can be done
    here, "" if one can. ``configured_in``: the file that sets a key.
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
        """Step an input that the core answers. Raises ``Refusal`` with the reason that the core gave."""
        taken = await self.ask(order)
        answer = taken.answer
        if answer is None:
            what = order.what if isinstance(order, Operator) else type(order).__name__
            raise AssertionError(f"the core does not answer {what!r}")
        if answer.refused is not None:
            raise Refusal(_STATUS[answer.refused], self.with_file(answer.reason, answer.setting))
        return answer, taken

    def with_file(self, reason: str, setting: str) -> str:
        """The reason, and the file of the setting that it is about: the core knows no files."""
        return f"{reason} ({setting} is in {self.configured_in(setting)})" if setting else reason
