"""A device is known no longer: what is open on it closes, what was kept of it goes."""

from nodeagent.core.faults import closing, companions
from nodeagent.core.model import (
    KERNEL_LOG,
    Cell,
    Claimed,
    Condition,
    Device,
    EventKind,
    Hold,
    Kind,
    Ordinal,
    PastResets,
    Promotion,
)
from nodeagent.core.rules import promotions
from nodeagent.core.state import limits
from nodeagent.core.state.state import State
from nodeagent.core.verdicts.emit import emit


def forget(state: State, device: Device, why: str, *kept: type[Cell]) -> None:
    """Its ordinals stay, for it may come back, and so do cells of these types."""
    for part in state.parts(device.id):
        forget(state, part, why, *kept)
    companions.forget(state, device.id)
    for condition in state.on(Condition, device.id):
        closing.close(state, condition, why)
    for promotion in state.on(Promotion, device.id):
        promotions.release(state, promotion, why)
    for hold in state.on(Hold, device.id):
        closing.lift(state, hold, why)
    for cell in state.about(device.id):
        if not isinstance(cell, (Ordinal, *kept)):
            state.drop(cell)
    state.drop(device)


def forget_named(state: State, device: Device, why: str, source: str = "") -> None:
    """One that only faults have named."""
    forget(state, device, why)
    _emit_end(state, device, f"{device.name} was known only by its faults: {why}", source)


def forget_by_order(state: State, device: Device, why: str) -> None:
    """How often it was reset stays, as with a part that was replaced: it may come back."""
    forget(state, device, why, PastResets)
    _emit_end(state, device, f"{device.name} is forgotten by {why}")


def forget_vanished(state: State, device: Device, why: str, source: str) -> None:
    """One that its source lists no longer."""
    forget(state, device, why)
    _emit_end(state, device, f"{device.name} is forgotten: {why}", source)


def is_host_part_without_fault(state: State, device: Device) -> bool:
    """Nobody schedules onto it, so that nobody misses it; a name of it may be another after an update."""
    is_bare = not any(state.on(cell, device.id) for cell in (Condition, Promotion, Hold))
    return device.kind is Kind.HOST and is_bare


def _emit_end(state: State, device: Device, reason: str, source: str = "") -> None:
    """An event of the node ends the id (``was``)."""
    node = state.device(state.node_id)
    emit(state, EventKind.NOTICE, node, source=source, why=reason, evidence={"was": device.id})


def forget_unlisted(state: State, source: str) -> bool:
    """The driver has listed and read all its chips: those that only kernel lines named are none."""
    changed = False
    for device in state.all(Device):
        conditions = state.on(Condition, device.id)
        if device.source or device.kind is not Kind.CHIP or not conditions or state.on(Hold, device.id):
            continue
        if all(each.source == KERNEL_LOG and _vendor(state, each) == source for each in conditions):
            forget_named(state, device, f"{source} lists no such chip", source)
            changed = True
    return changed


def _vendor(state: State, condition: Condition) -> str:
    row = state.lookup.facts(condition.code).row
    return row.vendor if row is not None else ""


def room_for_listed(state: State) -> bool:
    """Whether there is room for one that a driver lists: one that only lines have named makes way."""
    if limits.room_for_device(state):
        return True
    for device in state.all(Device):
        if not device.seen and not device.source and _is_nobodys(state, device):
            forget_named(state, device, "it makes way for one that a driver lists")
            return True
    return False


def _is_nobodys(state: State, device: Device) -> bool:
    return (
        device.id != state.node_id and not state.on(Hold, device.id) and state.get(Claimed, device.id) is None
    )
