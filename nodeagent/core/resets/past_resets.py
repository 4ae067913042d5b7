"""How often a device, and the node, was reset of late: what the limits of resets count.

It counts and forgets; what follows from a limit that is reached is decided elsewhere.
"""

from dataclasses import replace

from nodeagent.core.catalog.settings import ResetSettings
from nodeagent.core.model import NODE, PastResets, Reset, ResetsRecorded
from nodeagent.core.state.state import State


def count(state: State, device_id: str, settings: ResetSettings) -> int:
    """How many resets of the device, or of the node, count towards its limit now."""
    past = state.get(PastResets, device_id)
    since_ns = state.moment_ns - settings.limit_window_ns
    return sum(1 for at_ns in past.resets_ns if at_ns >= since_ns) if past is not None else 0


def exhausted(state: State, members: tuple[str, ...], settings: ResetSettings) -> str:
    """The first member that has had all its resets, "" if none."""
    return next(
        (device_id for device_id in members if count(state, device_id, settings) >= settings.limit), ""
    )


def limit_words(state: State, spent: str, settings: ResetSettings) -> str:
    """Words about a device that has had all its resets."""
    hours = settings.limit_window_ns / 3.6e12
    return f"{state.device(spent).name} had {settings.limit} resets within {hours:g} h"


def add(state: State, reset: Reset, settings: ResetSettings) -> None:
    """Its members and the node are reset at this moment. What the window no longer spans is forgotten, also
    of parts that are no longer here.
    """
    since_ns = state.moment_ns - settings.limit_window_ns
    for cell in state.all(PastResets):
        kept = tuple(at_ns for at_ns in cell.resets_ns if at_ns >= since_ns)
        if kept:
            state.put(replace(cell, resets_ns=kept))
        else:
            state.drop(cell)
    for device_id in (*reset.members, state.node_id):
        before = state.get(PastResets, device_id) or PastResets(device_id=device_id, resets_ns=())
        state.put(replace(before, resets_ns=(*before.resets_ns, state.moment_ns)))


def count_from_now(state: State, reset: Reset, counts: bool = True) -> None:
    """The hardware was reset at some time since the start: it counts from now, so that no window is short.

    Not ``counts``: nothing was done.
    """
    for device_id in (*reset.members, state.node_id):
        cell = state.get(PastResets, device_id)
        if cell is not None and reset.started_ns in cell.resets_ns:
            others = tuple(at_ns for at_ns in cell.resets_ns if at_ns != reset.started_ns)
            state.put(replace(cell, resets_ns=(*others, state.moment_ns) if counts else others))


def recorded(state: State, given: ResetsRecorded) -> bool:
    """Resets of which the record knows more than the store count as the record has them."""
    since_ns = state.moment_ns - state.lookup.settings.reset.limit_window_ns
    changed = False
    for named, resets_ns in given.resets_ns:
        device_id = state.node_id if named == NODE else named
        before = state.get(PastResets, device_id)
        known = [at_ns for at_ns in before.resets_ns if at_ns >= since_ns] if before is not None else []
        counting = tuple(at_ns for at_ns in resets_ns if at_ns >= since_ns)
        if len(counting) > len(known):
            state.put(PastResets(device_id=device_id, resets_ns=counting))
            changed = True
    return changed
