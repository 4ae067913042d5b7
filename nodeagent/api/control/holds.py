"""Holds of people as they are published, for the answers to orders about them. It decides nothing."""

from nodeagent.api import messages
from nodeagent.api.refusal import Refusal, Status
from nodeagent.core.model import Answer, HoldKind
from nodeagent.messages.pb import types_pb2
from nodeagent.store.records import Publication


def on_device(current: Publication, device_id: str, kind: HoldKind) -> list[types_pb2.Hold]:
    published = messages.Published(current)
    holds = (hold for hold in current.view.holds if hold.device_id == device_id and hold.kind is kind)
    return [published.hold(hold) for hold in holds]


def shown(current: Publication, answer: Answer) -> types_pb2.Hold:
    """The hold that an order made or found there. Raises Refusal where its time is over already."""
    hold = next((hold for hold in current.view.holds if hold.id in answer.ids), None)
    if hold is None:
        raise Refusal(Status.FAILED_PRECONDITION, "the hold has ended already")
    return messages.Published(current).hold(hold)


def end_of(hold: types_pb2.Hold) -> str:
    if hold.HasField("until"):
        return f"until {hold.until.ToJsonString()}"
    return "until resumed" if hold.kind == types_pb2.HOLD_KIND_QUIESCE else "until released"
