"""A person's orders: isolate and release. A hold isolates until its owner lifts it or its time is over."""

from nodeagent.core import clearing, devices, frequency, limits
from nodeagent.core.model import Condition, Device, EventKind, Hold, HoldKind, Operator, Promotion
from nodeagent.core.notices import notice
from nodeagent.core.state import State
from nodeagent.core.telling import tell


def due(state: State, hold: Hold) -> None:
    end(state, hold, f"the hold of {hold.owner} has ended")


def end(state: State, hold: Hold, why: str) -> None:
    """Whatever kind of hold it is."""
    if hold.kind is not HoldKind.QUIESCE:
        clearing.lift(state, hold, why)
        return
    state.drop(hold)
    tell(state, EventKind.RESUMED, state.device(hold.device_id), condition_id=hold.id, why=why)


def isolate(state: State, given: Operator) -> bool:
    """One hold for each owner and device: ordering again changes its reason and end."""
    device = devices.find(state, given.device)
    if device is None:
        return False
    before = _hold_of(state, device, given.who)
    if before is None and len(state.cells[Hold]) >= limits.MAX_HOLDS:
        why = f"{given.who} cannot isolate {device.name}: there are {limits.MAX_HOLDS} holds already"
        return notice(state, device, code="", why=why, source="agent")
    if before is not None:
        hold_id = before.id
    else:
        key = f"hold:{given.who}"
        hold_id = f"{device.id}/{key}#{limits.next_ordinal(state, device.id, key)}"
    hold = Hold(
        id=hold_id,
        device_id=device.id,
        owner=given.who,
        reason=given.reason,
        since_ns=state.moment_ns,
        until_ns=given.until_ns,
    )
    state.put(hold)
    tell(state, EventKind.ISOLATED, device, condition_id=hold.id, why=f"{given.who}: {given.reason}")
    return True


def release(state: State, given: Operator) -> bool:
    """Lift the owner's own hold, the device's promotions, and what only a person may clear; or one."""
    device = devices.find(state, given.device)
    if device is None:
        return False
    changed = False
    hold = _hold_of(state, device, given.who)
    if hold is not None and given.only in ("", hold.id):
        clearing.lift(state, hold, f"{given.who}: {given.reason}")
        changed = True
    for promotion in state.on(Promotion, device.id):
        if given.only in ("", promotion.id):
            frequency.release(state, promotion, f"released by {given.who}: {given.reason}")
            changed = True
    for condition in state.on(Condition, device.id):
        if given.only in ("", condition.id) and state.lookup.facts(condition.code).clear_on.operator:
            clearing.close(state, condition, f"released by {given.who}: {given.reason}")
            changed = True
    return changed


def _hold_of(state: State, device: Device, owner: str) -> Hold | None:
    isolations = (hold for hold in state.on(Hold, device.id) if hold.kind is HoldKind.ISOLATION)
    return next((hold for hold in isolations if hold.owner == owner), None)
