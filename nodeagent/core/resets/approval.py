"""Orders about a reset that is proposed: approve or refuse it. Its id names it, or a device of it."""

from nodeagent.core.devices import registry
from nodeagent.core.model import Device, Operator, Reset, ResetMode
from nodeagent.core.orders import answers, holds
from nodeagent.core.orders.answers import Answered
from nodeagent.core.resets import proposals, switched_off
from nodeagent.core.resets.switched_off import Said
from nodeagent.core.state.state import State

_MOST_SHOWN = 256


def approve(state: State, given: Operator) -> Answered:
    reset = _pending(state, given.device)
    if not isinstance(reset, Reset):
        return reset
    if reset.mode is not ResetMode.ASK:
        why = f"needs no approval: its mode is {reset.mode}, and only mode ask waits for one"
        asker = None if reset.once else state.get(Device, reset.asker_id)
        off, setting = _off(state, asker)
        return answers.not_possible(f"action_id: {reset.id} {why}{off}", setting)
    if not proposals.approve(state, reset, holds.said_by(given)):
        return answers.not_possible(f"action_id: {reset.id} is approved already")
    return answers.accepted(reset.id)


def refuse(state: State, given: Operator) -> Answered:
    reset = _pending(state, given.device)
    if not isinstance(reset, Reset):
        return reset
    proposals.refuse(state, reset, f"refused by {holds.said_by(given)}")
    return answers.accepted(reset.id)


def _pending(state: State, wanted: str) -> Reset | Answered:
    """The reset of that id, or the one that is pending on that device; or why there is none."""
    if (named := state.get(Reset, wanted)) is not None:
        if named.is_pending:
            return named
        moved_on = f"has ended: {named.result}" if named.has_ended else f"is {named.stage}"
        return answers.not_possible(f"action_id: {named.id} {moved_on}")
    device = registry.find(state, wanted)
    pending = [reset for reset in state.all(Reset) if reset.is_pending]
    found = [reset for reset in pending if device is not None and device.id in reset.members]
    if len(found) == 1:
        return found[0]
    shown = repr(wanted[:_MOST_SHOWN])
    if device is None:
        problem = f"{shown} is not known"
    else:
        problem = f"{'several resets are' if found else 'no reset is'} pending on {shown}"
    there = ", ".join(reset.id for reset in found or pending) or "none"
    off, setting = switched_off.NOTHING if found else _off(state, device)
    return answers.unknown(f"action_id: {problem}; pending: {there}{off}", setting)


def _off(state: State, device: Device | None) -> Said:
    """That resets of it are switched off, if they are, behind other words."""
    if device is None or not switched_off.can_be_ordered(device):
        return switched_off.NOTHING
    said, setting = switched_off.why(state.lookup.settings.reset, device)
    return (f"; {said}", setting) if said else switched_off.NOTHING
