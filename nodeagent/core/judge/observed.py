"""Whether a device, or the node, is observed, and why not: decided here alone. It weighs nothing.

A device is observed by the source that lists it. The node is observed by all of its sources together: what a
source would show that is on this node and cannot run is unknown. One that is not here hides nothing, and one
that was released on purpose is known to be released.
"""

from collections.abc import Iterator

from nodeagent.core.model import NODE, PREVIOUS_BOOT, Device, Reason, Source
from nodeagent.core.state.state import EngineState


def unobserved_reasons(state: EngineState, device: Device) -> tuple[Reason, ...]:
    """Why the device is not observed now; () if it is. The node has one for each source that is missed."""
    device = state.chip_of(device)
    if device.name == NODE:
        return tuple(map(_why_missed, _missed(state)))
    reason = _why_unobserved(state, device)
    return () if reason is None else (reason,)


def unobserved_reason(state: EngineState, device: Device) -> Reason | None:
    """The first of them."""
    return next(iter(unobserved_reasons(state, device)), None)


def last_verdict_expired(state: EngineState, device: Device) -> bool:
    """False for a while after a start in the same boot: the last verdict holds though nothing was read."""
    device = state.chip_of(device)
    seen_by = state.source_of(device.source, device.id)
    fresh = seen_by is not None and seen_by.lost_ns is None and seen_by.unread and not seen_by.stale
    was_read = device.seen and not device.unread and not device.gone
    return not (fresh and was_read) or state.era.rebooted


def last_observed_ns(state: EngineState, device: Device) -> int:
    """When a device that is not observed was last known to be, rule clock; 0 if never."""
    device = state.chip_of(device)
    seen_by = state.source_of(device.source, device.id)
    if seen_by is None or not device.seen:
        return 0
    return seen_by.lost_ns if seen_by.lost_ns is not None else seen_by.awaited_since_ns


def _why_unobserved(state: EngineState, device: Device) -> Reason | None:
    if why := device.traits.excluded:
        return Reason(kind="device", id=device.id, text=why)
    if device.gone:
        return Reason(kind="device", id=device.id, text=device.gone)
    if not device.seen:
        return Reason(kind="device", id=device.id, text="no driver has identified it")
    seen_by = state.source_of(device.source, device.id)
    if seen_by is not None and seen_by.lost_ns is not None:
        return Reason(kind="source", id=seen_by.name, text=f"{seen_by.name}: {seen_by.reason}")
    if device.unread:
        return Reason(kind="source", id=device.source, text=f"{device.source}: not read yet")
    if seen_by is not None and seen_by.unread:
        return Reason(kind="source", id=seen_by.name, text=f"{seen_by.name}: not read since start")
    return None


def _missed(state: EngineState) -> Iterator[Source]:
    """The sources without which the state of the node is unknown."""
    for source in state.cells[Source].values():
        if source.device_id or source.absent:
            continue
        if source.lost_ns is None:
            if source.unread and source.needed and (source.blind or source.stale):
                yield source
        elif source.required or (source.blind and source.name != PREVIOUS_BOOT):
            yield source


def _why_missed(source: Source) -> Reason:
    why = source.reason if source.lost_ns is not None else "not read since the start"
    return Reason(kind="source", id=source.name, text=f"{source.name}: {why}")
