"""A person's orders, by their verb. An unknown verb changes nothing; each verb's meaning is elsewhere."""

from collections.abc import Callable
from typing import Final

from nodeagent.core import devices, hindrances, holds, proposals
from nodeagent.core.model import Operator, Reset
from nodeagent.core.state import State


def ordered(state: State, given: Operator) -> bool:
    verb = _VERBS.get(given.what)
    return verb is not None and verb(state, given)


def _approve(state: State, given: Operator) -> bool:
    reset = state.get(Reset, given.device)
    return reset is not None and proposals.approve(state, reset, holds.said_by(given))


def _refuse(state: State, given: Operator) -> bool:
    reset = state.get(Reset, given.device)
    if reset is None or not reset.is_pending:
        return False
    proposals.refuse(state, reset, f"refused by {holds.said_by(given)}")
    return True


def _reset(state: State, given: Operator) -> bool:
    """A person asks for it: the same steps, without a fault."""
    device = devices.find(state, given.device)
    if device is None or hindrances.refusal(state, device):
        return False
    members = hindrances.group_of(state, device)
    return proposals.propose(state, device, members, [], given.who, given.reason)


_VERBS: Final[dict[str, Callable[[State, Operator], bool]]] = {
    "isolate": holds.isolate,
    "release": holds.release,
    "approve": _approve,
    "refuse": _refuse,
    "reset": _reset,
    "quiesce": holds.quiesce,
    "resume": holds.resume,
}
