"""Identity: what happens when a driver reads a part, another part answers to its name, or it is gone.

The part's own id is the key of everything known of it. Only a valid, different id replaces; a
renumbering changes names alone. Which device a name stands for says ``registry``.
"""

from dataclasses import replace

from nodeagent.core.devices import exclusion, forget, instances
from nodeagent.core.devices.registry import PROVISIONAL, find
from nodeagent.core.faults import closing, companions, kernel_lines
from nodeagent.core.faults.notices import notice
from nodeagent.core.model import (
    Absorbed,
    Cell,
    Claimed,
    Condition,
    Device,
    DeviceGone,
    DeviceSeen,
    EventKind,
    Held,
    Job,
    Noticed,
    Ordinal,
    PastResets,
    RuleCell,
    Shown,
    Sighting,
    Source,
    Trace,
    Window,
)
from nodeagent.core.rules.attributed_window import MAX_OCCURRENCES
from nodeagent.core.state.names import part_of
from nodeagent.core.state.queries import EXCLUDED, PART_OF
from nodeagent.core.state.state import State
from nodeagent.core.verdicts.emit import emit


def seen(state: State, given: DeviceSeen) -> bool:
    """A driver reads a device: it is new, known, renamed, identified at last, replaced, or refused."""
    in_slot = _in_slot(state, given)
    known = state.get(Device, given.identity) if given.identity else in_slot
    if known is None and in_slot is None and not forget.room_for_listed(state):
        state.overflow = f"{given.device} is one device too many"
        return False
    if not given.identity and in_slot is not None and not in_slot.id.startswith(PROVISIONAL):
        return _unreadable(state, in_slot)
    if given.identity and known is not None and _is_double(known, given):
        return _refuse(state, given, known)
    was = in_slot.id if in_slot is not None else ""
    if given.identity and in_slot is not None and in_slot is not known:
        if in_slot.id.startswith(PROVISIONAL):
            known = _identify(state, in_slot, known, given.identity)
            return _update(state, known, given, EventKind.DEVICE_SEEN, was)
        if known is None:
            _replace_part(state, in_slot)
            return _update(state, None, given, EventKind.DEVICE_REPLACED, was)
    return _update(state, known, given)


def gone(state: State, given: DeviceGone) -> bool:
    device = find(state, given.device)
    if device is not None and forget.is_host_part_without_fault(state, device):
        forget.forget_vanished(state, device, given.reason or "gone", given.source)
        return True
    if device is None or device.gone:
        return False
    state.put(replace(device, gone=given.reason or "gone"))
    emit(state, EventKind.DEVICE_GONE, state.device(device.id), source=given.source, why=given.reason)
    return True


def _in_slot(state: State, given: DeviceSeen) -> Device | None:
    """The slot is the PCI address; a name stands for it only where one of the two addresses is not known."""
    pci = given.attributes.get("pci", "")
    if pci and (by_pci := find(state, pci)) is not None:
        return by_pci
    by_name = find(state, given.device)
    if by_name is not None and pci and by_name.attributes.get("pci", pci) != pci:
        return None
    return by_name


def _unreadable(state: State, in_slot: Device) -> bool:
    if not in_slot.seen:
        return False
    state.put(replace(in_slot, seen=False))
    return True


def _update(
    state: State,
    known: Device | None,
    given: DeviceSeen,
    kind: EventKind = EventKind.DEVICE_SEEN,
    was: str = "",
) -> bool:
    """Put the device as the driver describes it now; emit an event only where it was not there before.

    ``was`` is the id that ends with this, and becomes evidence.
    """
    pci = given.attributes.get("pci", given.device)
    after = Device(
        id=known.id if known else given.identity or f"{PROVISIONAL}{pci}",
        name=given.device,
        kind=given.kind,
        vendor=given.vendor,
        source=given.source,
        attributes=given.attributes,
        seen=True,
        unread=known is None or known.unread or bool(known.gone) or not known.source,
    )
    if known == after and not was:
        return False
    _vacate(state, after, known)
    state.put(after)
    instances.follow(state, after)
    if EXCLUDED in after.attributes:
        exclusion.begin(state, after)
    if after.attributes.get("mig") == "disabled":
        for part in state.parts(after.id):
            forget.forget_named(state, part, f"{after.name} is not partitioned any more", given.source)
    if known is not None and not known.source:
        kernel_lines.listed(state, after)
    if known is None or known.gone or not known.seen or was:
        why = given.identity or f"identified by its place {pci}"
        evidence = {**given.attributes, "was": was} if was else given.attributes
        emit(state, kind, after, source=given.source, why=why, evidence=evidence)
    for part in state.parts(after.id) if was else ():
        evidence = {"was": f"{was}/{part_of(part.id)[1]}"}
        emit(state, kind, part, source=given.source, why=f"a part of {after.name}", evidence=evidence)
    return True


def _vacate(state: State, arriving: Device, before: Device | None) -> None:
    """What had the name takes the one that becomes free; what had the address is there no longer."""
    namesake = state.get(Device, state.names.get(arriving.name, ""))
    if namesake is not None and namesake.id != arriving.id:
        free = before.name if before is not None and before.name != arriving.name else namesake.id
        moved = replace(namesake, name=free)
        state.put(moved)
        instances.follow(state, moved)
    neighbour = state.get(Device, state.names.by_pci.get(arriving.attributes.get("pci", ""), ""))
    if neighbour is not None and neighbour.id != arriving.id:
        left = {key: value for key, value in neighbour.attributes.items() if key != "pci"}
        state.put(replace(neighbour, attributes=left))


def _identify(state: State, provisional: Device, known: Device | None, identity: str) -> Device:
    """The id has appeared: everything kept under the provisional one moves to it.

    The numbers given under the provisional id stay with it too: that id may come again.
    """
    for condition in state.on(Condition, provisional.id):
        if known is not None and (same := _open_on(state, known, condition)) is not None:
            companions.follow(state, condition, same)
            closing.close(state, condition, f"the same fault is open on {known.id}, which this device is")
    state.drop(provisional)
    identified = known or replace(provisional, id=identity)
    state.put(identified)
    for cell in state.about(provisional.id):
        if not isinstance(cell, Ordinal):
            state.drop(cell)
        moved = _merged(state, replace(cell, device_id=identity))
        if moved is not None:
            state.put(moved)
    _rename_in_jobs(state, provisional.id, identity)
    for part in state.parts(provisional.id):
        state.put(moving := replace(part, attributes={**part.attributes, PART_OF: identity}))
        part_id = f"{identity}/{part_of(part.id)[1]}"
        _identify(state, moving, state.get(Device, part_id), part_id)
    # What is known of the sources moved along: other times stand still now than before.
    state.rearm()
    return identified


def _rename_in_jobs(state: State, before: str, after: str) -> None:
    for job in state.all(Job):
        if before in job.devices or job.device_id == before:
            devices = tuple(dict.fromkeys(after if each == before else each for each in job.devices))
            device_id = after if job.device_id == before else job.device_id
            state.put(replace(job, devices=devices, device_id=device_id))


def _open_on(state: State, device: Device, condition: Condition) -> Condition | None:
    return state.condition(
        device.id, state.lookup.facts(condition.code).key, condition.injected, condition.report
    )


def _merged(state: State, moved: Cell) -> Cell | None:
    """What is kept of a cell that moves to a device of which there may be one already; None for nothing."""
    match moved:
        case Ordinal():
            there = state.get(Ordinal, moved.device_id, moved.key)
            if there is None:
                return moved
            recovered_ns = max(moved.recovered_ns, there.recovered_ns)
            return replace(moved, last=max(moved.last, there.last), recovered_ns=recovered_ns)
        case Window():
            window = state.get(Window, moved.device_id, moved.code, moved.rule)
            if window is None:
                return moved
            attributed = sorted((*moved.attributed, *window.attributed), key=lambda one: one.last_ns)
            return replace(
                moved, occurrences_ns=_joined(moved, window), attributed=tuple(attributed)[-MAX_OCCURRENCES:]
            )
        case Sighting():
            sighting = state.get(Sighting, moved.device_id, moved.code)
            return replace(moved, occurrences_ns=_joined(moved, sighting)) if sighting else moved
        case Trace():
            trace = state.get(Trace, moved.device_id, moved.code)
            return moved if trace is None or trace.occurred_ns < moved.occurred_ns else None
        case Absorbed():
            return moved if state.get(Absorbed, moved.device_id, moved.code) is None else None
        case RuleCell():
            cells = state.of_rule(type(moved), moved.device_id, moved.rule)
            return moved if all(each.part != moved.part for each in cells) else None
        case Noticed():
            return None
        case PastResets():
            past = state.get(PastResets, moved.device_id)
            resets_ns = sorted({*moved.resets_ns, *(past.resets_ns if past else ())})
            return replace(moved, resets_ns=tuple(resets_ns))
        case Held() | Shown() | Claimed():
            return moved if state.get(type(moved), moved.device_id) is None else None
        case Source():
            return moved if state.get(Source, moved.name, moved.device_id) is None else None
        case _:
            return moved


def _joined(one: Window | Sighting, other: Window | Sighting) -> tuple[int, ...]:
    return tuple(sorted((*one.occurrences_ns, *other.occurrences_ns)))


def _replace_part(state: State, old: Device) -> None:
    """Another part sits in the slot: close and forget what was known of the old one.

    How often it was reset stays: it may come back.
    """
    forget.forget(state, old, EventKind.DEVICE_REPLACED.value, PastResets)


def _is_double(known: Device, given: DeviceSeen) -> bool:
    if known.gone or not known.seen:
        return False
    here, there = given.attributes.get("pci", ""), known.attributes.get("pci", "")
    return bool(here and there) and here != there


def _refuse(state: State, given: DeviceSeen, known: Device) -> bool:
    why = f"{given.device} claims the identity {given.identity} of {known.name}: it is refused"
    return notice(state, known, code="", why=why, source=given.source)
