"""What is not observed is not judged: sources lost, back, and awaited after a start."""

from dataclasses import replace

from nodeagent.core import devices
from nodeagent.core.model import (
    ALL_DEVICES,
    NODE,
    Condition,
    Device,
    EventKind,
    Promotion,
    Source,
    SourceBack,
    SourceLost,
    Started,
)
from nodeagent.core.state import State
from nodeagent.core.telling import tell

_ALWAYS_HEARD = frozenset({"agent", "public"})
"""Sources that are not polled: the agent itself, and others who report to it."""


def started(state: State, given: Started) -> bool:
    """A daemon begins: every source that ever spoke is awaited, its timers held, the last verdicts stand."""
    devices.resolve(state, NODE, None)
    era = state.era
    rebooted = bool(era.boot_id) and era.boot_id != given.boot_id
    state.put(replace(era, boot_id=given.boot_id, started_ns=state.now_ns, rebooted=rebooted))
    names = {cell.name for cell in state.all(Source)}
    names |= {cell.source for cell in state.all(Condition)} | {cell.source for cell in state.all(Promotion)}
    names |= {cell.source for cell in state.all(Device)}
    for name in sorted(names - _ALWAYS_HEARD - {""}):
        _await(state, name)
    state.rearm()
    why = f"nodeagent {given.version}" + (" after a reboot" if rebooted else "")
    tell(state, EventKind.STARTED, state.device(state.node_id), source="agent", why=why)
    return True


def _await(state: State, name: str) -> None:
    for cell in list(state.all(Source)):
        if cell.name == name and cell.device_id and cell.lost_ns is None:
            state.drop(cell)
    whole = state.get(Source, name, "") or Source(name=name)
    state.put(replace(whole, awaited=True, awaited_since_ns=state.now_ns, stale=False))


def lost(state: State, given: SourceLost) -> bool:
    """The source, or its view of one device, no longer observes; its timers are held until it does."""
    device = devices.find(state, given.device) if given.device else None
    if given.device and device is None:
        return False
    device_id = device.id if device else ""
    before = state.get(Source, given.source, device_id)
    if before is not None and before.lost_ns is not None and before.reason == given.reason:
        return False
    if not device_id:
        for cell in list(state.all(Source)):
            if cell.name == given.source and cell.device_id:
                state.drop(cell)
    state.put(
        Source(
            name=given.source,
            device_id=device_id,
            lost_ns=before.lost_ns if before and before.lost_ns is not None else state.moment_ns,
            reason=given.reason,
            required=given.required,
            awaited=True,
            awaited_since_ns=state.moment_ns,
        )
    )
    state.rearm()
    about = device or state.device(state.node_id)
    tell(state, EventKind.SOURCE_LOST, about, source=given.source, why=given.reason)
    return True


def back(state: State, given: SourceBack) -> bool:
    return read(state, given.source, given.device or ALL_DEVICES)


def read(state: State, source: str, device_name: str) -> bool:
    """A complete read of a device, or of all, was made: timers run on from where they were."""
    everything = device_name == ALL_DEVICES
    device = None if everything else devices.find(state, device_name)
    if not everything and device is None:
        return False
    before = state.source_of(source, device.id if device else "")
    lone = before is not None and bool(before.device_id)
    if before is not None and not (before.awaited or before.stale or before.lost_ns is not None):
        return False
    if before is None and not everything:
        return False
    if everything or device is None:
        for cell in list(state.all(Source)):
            if cell.name == source and cell.device_id:
                state.drop(cell)
        state.put(Source(name=source, required=before.required if before else False))
    elif lone and before is not None:
        state.put(Source(name=source, device_id=device.id, required=before.required))
    else:
        state.put(Source(name=source, device_id=device.id))
    state.rearm()
    if before is not None and before.lost_ns is not None:
        about = device or state.device(state.node_id)
        tell(state, EventKind.SOURCE_BACK, about, source=source, why=f"was lost: {before.reason}")
    return True


def due(state: State, source: Source) -> None:
    """Not read since the start: first the last verdicts no longer stand, then the held timers run on."""
    settings = state.lookup.settings
    ended = state.moment_ns > source.awaited_since_ns + settings.start_deadline_ns
    state.put(replace(source, stale=True, awaited=not ended))
    if ended:
        state.rearm()
