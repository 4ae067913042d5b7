"""A person's orders, by their verb. An unknown verb changes nothing; each verb's meaning is elsewhere."""

from collections.abc import Callable
from typing import Final

from nodeagent.core import devices, hindrances, holds, limits, proposals
from nodeagent.core.model import EventKind, Hold, HoldKind, Operator, Reset
from nodeagent.core.state import State
from nodeagent.core.telling import tell


def ordered(state: State, given: Operator) -> bool:
    verb = _VERBS.get(given.what)
    return verb is not None and verb(state, given)


def _approve(state: State, given: Operator) -> bool:
    reset = state.get(Reset, given.device)
    return reset is not None and proposals.approve(state, reset, _by(given))


def _refuse(state: State, given: Operator) -> bool:
    reset = state.get(Reset, given.device)
    if reset is None or not proposals.is_pending(reset):
        return False
    proposals.refuse(state, reset, f"refused by {_by(given)}")
    return True


def _reset(state: State, given: Operator) -> bool:
    """A person asks for it: the same steps, without a fault."""
    device = devices.find(state, given.device)
    if device is None or hindrances.refusal(state, device):
        return False
    members = hindrances.group_of(state, device)
    return proposals.propose(state, device, members, [], given.who, given.reason)


def _quiesce(state: State, given: Operator) -> bool:
    """One for each owner: ordering it again changes its reason and end."""
    node = state.device(state.node_id)
    hold_id = f"{node.id}/quiesce:{given.who}"
    if ("hold", hold_id) not in state.cells[Hold] and len(state.cells[Hold]) >= limits.MAX_HOLDS:
        return False
    hold = Hold(
        id=hold_id,
        device_id=node.id,
        owner=given.who,
        reason=given.reason,
        since_ns=state.moment_ns,
        until_ns=given.until_ns,
        kind=HoldKind.QUIESCE,
    )
    state.put(hold)
    tell(state, EventKind.QUIESCED, node, condition_id=hold.id, why=f"{given.who}: {given.reason}")
    return True


def _resume(state: State, given: Operator) -> bool:
    """Of the owner's own quiesce."""
    node = state.device(state.node_id)
    for hold in state.on(Hold, node.id):
        if hold.kind is HoldKind.QUIESCE and hold.owner == given.who:
            holds.end(state, hold, _by(given))
            return True
    return False


def _by(given: Operator) -> str:
    return f"{given.who}: {given.reason}" if given.reason else given.who


_VERBS: Final[dict[str, Callable[[State, Operator], bool]]] = {
    "isolate": holds.isolate,
    "release": holds.release,
    "approve": _approve,
    "refuse": _refuse,
    "reset": _reset,
    "quiesce": _quiesce,
    "resume": _resume,
}
