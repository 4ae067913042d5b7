"""Holds of people as they are published: which one an order made, and whose there are. It decides nothing."""

from collections.abc import Iterable

from nodeagent.core import limits
from nodeagent.core.model import Hold, HoldKind, Operator
from nodeagent.outlets.pb import types_pb2
from nodeagent.outlets.refusal import Refusal, Status
from nodeagent.store.records import Publication


def on_device(current: Publication, device_id: str, kind: HoldKind) -> list[Hold]:
    return [hold for hold in current.view.holds if hold.device_id == device_id and hold.kind is kind]


def made_by(current: Publication, order: Operator, kind: HoldKind) -> Hold:
    """The hold that an order made or found there. Raises Refusal where there is none."""
    there = on_device(current, order.device, kind)
    wanted = (order.owner, order.reason)
    hold = next((hold for hold in there if (hold.owner, hold.reason) == wanted), None)
    if hold is None:
        raise Refusal(Status.RESOURCE_EXHAUSTED, _why_none(current, order, there))
    return hold


def named(holds: Iterable[Hold]) -> str:
    """Whose they are, why, and by which id they can be ended."""
    return "; ".join(f"{hold.owner} ({hold.reason}), id {hold.id}" for hold in holds)


def not_yours(what: str, owner: str, others: Iterable[Hold]) -> str:
    return f"{what} by {named(others)}; {owner} has no hold there: name its owner or its id, or use force"


def end_of(hold: types_pb2.Hold) -> str:
    if hold.HasField("until"):
        return f"until {hold.until.ToJsonString()}"
    return "until resumed" if hold.kind == types_pb2.HOLD_KIND_QUIESCE else "until released"


def _why_none(current: Publication, order: Operator, there: list[Hold]) -> str:
    if sum(hold.owner == order.owner for hold in there) >= limits.MAX_HOLDS_OF_OWNER:
        told = f"{order.owner} has {limits.MAX_HOLDS_OF_OWNER} holds there already"
    elif len(current.view.holds) >= limits.MAX_HOLDS:
        told = f"there are {limits.MAX_HOLDS} holds already"
    else:
        return "the hold has ended already"
    return f"{told}; release some first"
