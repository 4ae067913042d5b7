"""A person's orders: isolate and release. A hold isolates until its owner lifts it or its time is over."""

from nodeagent.core import clearing, deadlines, devices, frequency
from nodeagent.core.model import Device, EventKind, Hold, Operator
from nodeagent.core.state import State
from nodeagent.core.telling import tell


def ordered(state: State, given: Operator) -> bool:
    """Carry out what is known of orders; an unknown device or verb changes nothing."""
    device = devices.find(state, given.device)
    if device is None:
        return False
    if given.what == "isolate":
        return _isolate(state, device, given)
    if given.what == "release":
        return _release(state, device, given)
    return False


def due(state: State, hold: Hold) -> None:
    state.drop(hold)
    why = f"the hold of {hold.owner} has ended"
    tell(state, EventKind.RELEASED, state.device(hold.device_id), why=why)


def _isolate(state: State, device: Device, given: Operator) -> bool:
    """One hold for each owner and device: ordering again changes its reason and end."""
    hold = Hold(
        id=f"{device.id}/hold:{given.who}",
        device_id=device.id,
        owner=given.who,
        reason=given.reason,
        since_ns=state.moment_ns,
        until_ns=given.until_ns,
    )
    state.put(hold)
    tell(state, EventKind.ISOLATED, device, why=f"{given.who}: {given.reason}")
    return True


def _release(state: State, device: Device, given: Operator) -> bool:
    """Lift the owner's own hold, the device's promotions, and what only a person may clear."""
    changed = False
    hold = state.get(Hold, f"{device.id}/hold:{given.who}")
    if hold is not None:
        state.drop(hold)
        tell(state, EventKind.RELEASED, device, why=f"{given.who}: {given.reason}")
        changed = True
    for promotion in state.promotions_on(device.id):
        frequency.release(state, promotion, f"released by {given.who}: {given.reason}")
        changed = True
    for condition in state.conditions_on(device.id):
        if deadlines.clear_on(state.lookup, condition.code).operator:
            clearing.close(state, condition, f"released by {given.who}: {given.reason}")
            changed = True
    return changed
