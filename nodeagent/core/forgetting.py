"""A device is known no longer: what is open on it closes, what was kept of it goes. Why, its callers know."""

from nodeagent.core import clearing, companions, frequency
from nodeagent.core.model import Cell, Condition, Device, EventKind, Hold, Ordinal, Promotion
from nodeagent.core.state import State
from nodeagent.core.telling import tell


def forget(state: State, device: Device, why: str, *kept: type[Cell]) -> None:
    """Its ordinals stay, for it may come back, and so do cells of these types."""
    for part in state.parts(device.id):
        forget(state, part, why, *kept)
    companions.forget(state, device.id)
    for condition in state.on(Condition, device.id):
        clearing.close(state, condition, why)
    for promotion in state.on(Promotion, device.id):
        frequency.release(state, promotion, why)
    for hold in state.on(Hold, device.id):
        clearing.lift(state, hold, why)
    for cell in state.about(device.id):
        if not isinstance(cell, (Ordinal, *kept)):
            state.drop(cell)
    state.drop(device)


def forget_named(state: State, device: Device, why: str, source: str = "") -> None:
    """One that only faults have named: the node is told, whose event ends the id (``was``)."""
    forget(state, device, why)
    told = f"only faults had named {device.name}: {why}"
    node = state.device(state.node_id)
    tell(state, EventKind.NOTICE, node, source=source, why=told, evidence={"was": device.id})
