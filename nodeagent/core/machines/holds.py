"""Holds of people: isolate a device, quiesce and resume the node. How a device is released is in ``orders``.

A hold is its owner's, and for one reason: another owner or another reason makes another hold, and the same
order again only ever moves its end to later. It ends when its time is over, by its owner, by its id, or by
force.

The caller (``Operator.who``) is known to the shell; the owner (``owner``) is what the caller states. An order
without an owner was stored before there were any: each caller then had one hold, which the next replaced.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.faults import ending
from nodeagent.core.judge.events import emit, notice
from nodeagent.core.model import AGENT, Device, Event, EventKind, Hold, HoldKind, Operator
from nodeagent.core.state import answers, limits, registry
from nodeagent.core.state.answers import Answered
from nodeagent.core.state.state import EngineState

_KEYS: Final = {HoldKind.ISOLATION: "hold", HoldKind.QUIESCE: "quiesce"}

_EVENTS: Final = {HoldKind.ISOLATION: EventKind.ISOLATED, HoldKind.QUIESCE: EventKind.QUIESCED}

_FOR: Final = "for_s"
"""The key in the evidence of how long a hold lasts from its event: whole seconds, or ``_UNLIMITED``."""

_UNLIMITED: Final = "unlimited"


def isolate(state: EngineState, given: Operator) -> Answered:
    device = registry.find(state, given.device)
    if device is None:
        return answers.unknown_device(given.device)
    return _hold(state, device, HoldKind.ISOLATION, given)


def quiesce(state: EngineState, given: Operator) -> Answered:
    return _hold(state, state.device(state.node_id), HoldKind.QUIESCE, given)


def resume(state: EngineState, given: Operator) -> Answered:
    node = state.device(state.node_id)
    if ended := lift(state, node, HoldKind.QUIESCE, given):
        return answers.accepted(*ended)
    others = of_kind(state, node, HoldKind.QUIESCE)
    if not others:
        return answers.not_possible("this node is not quiesced")
    if given.only:
        by = f"it is quiesced by {_named(others)}"
        return answers.not_possible(f"id: {given.only!r} is not a quiesce of this node; {by}")
    return answers.not_possible(not_yours("this node is quiesced", given, others))


def lift(state: EngineState, device: Device, kind: HoldKind, given: Operator) -> list[str]:
    """End the owner's holds of that kind, or the one that is named, or by force all. The ids of those."""
    ended = []
    for hold in of_kind(state, device, kind):
        own = hold.owner in (given.owner, given.who)
        if hold.id == given.only or (not given.only and (own or given.force)):
            _end(
                state,
                hold,
                caller_text(given) if own else f"{caller_text(given)}; it was the hold of {hold.owner}",
            )
            ended.append(hold.id)
    return ended


def due(state: EngineState, hold: Hold) -> None:
    _end(state, hold, f"the hold of {hold.owner} has ended")


def of_kind(state: EngineState, device: Device, kind: HoldKind) -> list[Hold]:
    return [hold for hold in state.on(Hold, device.id) if hold.kind is kind]


def not_yours(what: str, given: Operator, others: Iterable[Hold]) -> str:
    owner = given.owner or given.who
    return (
        f"{what} by {_named(others)}; {owner} has no hold there: use --owner or --id to name one, or --force"
    )


def _named(holds: Iterable[Hold]) -> str:
    """Owner, reason and id of each."""
    return "; ".join(f"{hold.owner} ({hold.reason}), id {hold.id}" for hold in holds)


def _hold(state: EngineState, device: Device, kind: HoldKind, given: Operator) -> Answered:
    before = _same(state, device, kind, given)
    if before is None:
        if why := _no_room(state, device, given):
            changed = notice(state, device, code="", why=why, source=AGENT)
            return answers.no_room(f"{why}; release some first", changed=changed)
        hold = _begun(state, device, kind, given)
    elif not given.owner:
        hold = replace(before, reason=given.reason, since_ns=state.moment_ns, until_ns=given.until_ns)
    elif _is_later(given.until_ns, before.until_ns):
        hold = replace(before, until_ns=given.until_ns)
    else:
        return answers.accepted(before.id, changed=False)
    state.put(hold)
    lasting = {_FOR: _stated_end(state, hold)}
    emit(state, _EVENTS[kind], device, condition_id=hold.id, why=caller_text(given), evidence=lasting)
    return answers.accepted(hold.id)


def _same(state: EngineState, device: Device, kind: HoldKind, given: Operator) -> Hold | None:
    """The hold that this orders once more."""
    owner = given.owner or given.who
    own = (hold for hold in of_kind(state, device, kind) if hold.owner == owner)
    return next((hold for hold in own if not given.owner or hold.reason == given.reason), None)


def _begun(state: EngineState, device: Device, kind: HoldKind, given: Operator) -> Hold:
    owner = given.owner or given.who
    key = f"{_KEYS[kind]}:{owner}"
    if kind is HoldKind.QUIESCE and not given.owner:
        hold_id = f"{device.id}/{key}"
    else:
        hold_id = limits.next_id(state, Hold, device.id, key)
    return Hold(
        id=hold_id,
        device_id=device.id,
        owner=owner,
        reason=given.reason,
        since_ns=state.moment_ns,
        until_ns=given.until_ns,
        kind=kind,
        set_by=given.who,
    )


def _no_room(state: EngineState, device: Device, given: Operator) -> str:
    """Why there can be no further hold, "" if there can."""
    if len(state.cells[Hold]) >= limits.MAX_HOLDS:
        return f"{given.who} cannot hold {device.name}: there are {limits.MAX_HOLDS} holds already"
    owner = given.owner or given.who
    if sum(hold.owner == owner for hold in state.on(Hold, device.id)) >= limits.MAX_HOLDS_OF_OWNER:
        return f"{owner} holds {device.name} for {limits.MAX_HOLDS_OF_OWNER} reasons already"
    return ""


def _is_later(until_ns: int | None, than_ns: int | None) -> bool:
    return than_ns is not None and (until_ns is None or until_ns > than_ns)


def _end(state: EngineState, hold: Hold, why: str) -> None:
    """Whatever kind of hold it is."""
    if hold.kind is not HoldKind.QUIESCE:
        ending.lift(state, hold, why)
        return
    state.drop(hold)
    emit(state, EventKind.RESUMED, state.device(hold.device_id), condition_id=hold.id, why=why)


# ---------------------------------------------------------------------- their texts and events


def caller_text(given: Operator) -> str:
    """The person who gave the order, and the reason, as text: ``alice (uid:0): fan swap``."""
    who = f"{given.owner} ({given.who})" if given.owner not in ("", given.who) else given.who
    return f"{who}: {given.reason}" if given.reason else who


def owner_in(why: str) -> tuple[str, str, str]:
    """Owner, caller and reason, out of the text of ``caller_text``."""
    caller, _, reason = why.partition(": ")
    owner, bracket, who = caller.partition(" (")
    return (owner, who.removesuffix(")"), reason) if bracket else (caller, caller, reason)


def states_end(event: Event) -> bool:
    """Whether the event of a hold states when it ends, or that it does not: an older event states neither."""
    return _FOR in event.evidence


def end_in(event: Event) -> int | None:
    """When the hold of the event ends, None if never."""
    length = event.evidence.get(_FOR, _UNLIMITED)
    return event.at_ns + int(length) * SECOND_NS if length.isdecimal() else None


def _stated_end(state: EngineState, hold: Hold) -> str:
    if hold.until_ns is None:
        return _UNLIMITED
    return str(max(0, -((state.moment_ns - hold.until_ns) // SECOND_NS)))
