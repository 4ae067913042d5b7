"""What is reported of a node: an event, a whole state, or that it does not answer. Values only."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from nodeagent.client import Bookmark, Event, Position, Snapshot
from nodeagent.client.session import WatchSession
from nodeagent.fleet.state import Contact, NodeState
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.messages.pb import types_pb2


class What(StrEnum):
    """``state``: the whole state, where the stream cannot go on from what was seen last."""

    EVENT = "event"
    STATE = "state"
    AWAY = "away"
    REFUSES = "refuses"
    BACK = "back"


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """``node`` is the state of the node after it. Of an event or a state ``message`` is what was received,
    ``value`` the client's value of it, and ``position`` may be stored once its effect is done.
    """

    what: What
    node: NodeState
    at: datetime
    reason: str = ""
    message: types_pb2.Event | pb.Snapshot | None = None
    value: Event | Snapshot | None = None
    position: Position | None = None

    @property
    def is_durable(self) -> bool:
        """Whether it has a position; whether a node answers has none."""
        return self.position is not None


_NEWS: Final = {Contact.AWAY: What.AWAY, Contact.REFUSES: What.REFUSES, Contact.ANSWERS: What.BACK}


def news_of(before: Contact, after: Contact) -> What | None:
    """The report for a change of contact. The first answer of a node is not reported."""
    is_expected = (before, after) == (Contact.NEW, Contact.ANSWERS)
    return None if before is after or is_expected else _NEWS.get(after)


Received = tuple[Event | Snapshot | Bookmark, types_pb2.Event | pb.Snapshot | None]


def received_values(session: WatchSession, response: pb.WatchResponse) -> list[Received]:
    """Each value of a response with the message that it was made of; a bookmark has none."""
    messages: list[types_pb2.Event | pb.Snapshot | None] = [None]
    match response.WhichOneof("payload"):
        case "batch":
            messages = list(response.batch.events)
        case "snapshot":
            messages = [response.snapshot]
    return list(zip(session.updates(response), messages, strict=False))
