"""The life of a device: a driver reads it, another one replaces it, it is gone, excluded or forgotten.

The id of the hardware is the key of everything known of it. Only a valid, different id replaces; a
renumbering changes names alone. Which device a name means is worked out in ``registry``.

A device that the configuration excludes is listed, and no report about it is taken; what was open on it
closes, and isolations stay, because a person ordered them.

A baseline is what a driver has seen of a device while it was well. It is kept by the id, so that it outlives
workers, daemons and boots; only the driver knows what a difference means.
"""

from dataclasses import replace

from nodeagent.core.faults import ending, kernel_lines
from nodeagent.core.judge.events import emit, notice
from nodeagent.core.machines import holds
from nodeagent.core.model import (
    KERNEL_LOG,
    Absorbed,
    Baseline,
    BaselineSeen,
    Cell,
    Claimed,
    Condition,
    Device,
    DeviceGone,
    DeviceProcesses,
    DeviceSeen,
    EventKind,
    Hold,
    Job,
    Kind,
    Noticed,
    Operator,
    Ordinal,
    PastResets,
    Promotion,
    RuleCell,
    Shown,
    Sighting,
    Source,
    Trace,
    Window,
)
from nodeagent.core.model.traits import PART_OF, PCI
from nodeagent.core.rules import frequency
from nodeagent.core.rules.windows import MAX_OCCURRENCES
from nodeagent.core.state import answers, deadlines, limits, registry
from nodeagent.core.state.answers import Answered
from nodeagent.core.state.names import part_of
from nodeagent.core.state.registry import PROVISIONAL, find
from nodeagent.core.state.state import EngineState


def seen(state: EngineState, given: DeviceSeen) -> bool:
    """A driver reads a device: it is new, known, renamed, identified at last, replaced, or refused."""
    in_slot = _in_slot(state, given)
    known = state.get(Device, given.identity) if given.identity else in_slot
    if known is None and in_slot is None and not _room_for_listed(state):
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


def _in_slot(state: EngineState, given: DeviceSeen) -> Device | None:
    """The slot is the PCI address; a name counts for it only where one of the two addresses is not known."""
    pci = given.traits.pci
    if pci and (by_pci := find(state, pci)) is not None:
        return by_pci
    by_name = find(state, given.device)
    if by_name is not None and pci and by_name.traits.pci not in ("", pci):
        return None
    return by_name


def _unreadable(state: EngineState, in_slot: Device) -> bool:
    if not in_slot.seen:
        return False
    state.put(replace(in_slot, seen=False))
    return True


def _is_double(known: Device, given: DeviceSeen) -> bool:
    if known.gone or not known.seen:
        return False
    here, there = given.traits.pci, known.traits.pci
    return bool(here and there) and here != there


def _refuse(state: EngineState, given: DeviceSeen, known: Device) -> bool:
    why = f"{given.device} reports the identity {given.identity} of {known.name}: it is refused"
    return notice(state, known, code="", why=why, source=given.source)


def _update(
    state: EngineState,
    known: Device | None,
    given: DeviceSeen,
    kind: EventKind = EventKind.DEVICE_SEEN,
    was: str = "",
) -> bool:
    """Put the device as the driver describes it now; emit an event only where it was not there before.

    ``was`` is the id that ends with this, and becomes evidence.
    """
    pci = given.traits.pci or given.device
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
    registry.rename_parts(state, after)
    if after.traits.excluded:
        _exclude(state, after)
    if after.traits.is_whole:
        for part in state.parts(after.id):
            _forget_named(state, part, f"{after.name} is not partitioned any more", given.source)
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


def _vacate(state: EngineState, arriving: Device, before: Device | None) -> None:
    """The device that had the name takes the one that becomes free; one that had the address loses it."""
    namesake = state.get(Device, state.names.get(arriving.name, ""))
    if namesake is not None and namesake.id != arriving.id:
        free = before.name if before is not None and before.name != arriving.name else namesake.id
        moved = replace(namesake, name=free)
        state.put(moved)
        registry.rename_parts(state, moved)
    neighbour = state.get(Device, state.names.by_pci.get(arriving.traits.pci, ""))
    if neighbour is not None and neighbour.id != arriving.id:
        left = {key: value for key, value in neighbour.attributes.items() if key != PCI}
        state.put(replace(neighbour, attributes=left))


def _exclude(state: EngineState, device: Device) -> None:
    """From now on it is excluded."""
    why = device.traits.excluded
    for each in (device, *state.parts(device.id)):
        for condition in state.on(Condition, each.id):
            ending.close(state, condition, why)
        for promotion in state.on(Promotion, each.id):
            frequency.release(state, promotion, why)


def gone(state: EngineState, given: DeviceGone) -> bool:
    device = find(state, given.device)
    if device is not None and _is_host_part_without_fault(state, device):
        _forget_vanished(state, device, given.reason or "gone", given.source)
        return True
    if device is None or device.gone:
        return False
    state.put(replace(device, gone=given.reason or "gone"))
    emit(state, EventKind.DEVICE_GONE, state.device(device.id), source=given.source, why=given.reason)
    return True


def _is_host_part_without_fault(state: EngineState, device: Device) -> bool:
    """No work is scheduled onto it, so that none misses it; its name may be another after an update."""
    is_bare = not any(state.on(cell, device.id) for cell in (Condition, Promotion, Hold))
    return device.kind is Kind.HOST and is_bare


def _room_for_listed(state: EngineState) -> bool:
    """Whether there is room for one that a driver lists: one that only lines have named makes way."""
    if limits.room_for_device(state):
        return True
    for device in state.all(Device):
        if not device.seen and not device.source and _is_unused(state, device):
            _forget_named(state, device, "it makes way for one that a driver lists")
            return True
    return False


def _is_unused(state: EngineState, device: Device) -> bool:
    return (
        device.id != state.node_id and not state.on(Hold, device.id) and state.get(Claimed, device.id) is None
    )


# ---------------------------------------------------------------------- replaced or identified


def _replace_part(state: EngineState, old: Device) -> None:
    """Another device sits in the slot: close and forget what was known of the old one.

    How often it was reset stays: it may come back.
    """
    _forget(state, old, EventKind.DEVICE_REPLACED.value, PastResets)


def _identify(state: EngineState, provisional: Device, known: Device | None, identity: str) -> Device:
    """The id has appeared: everything kept under the provisional one moves to it.

    The numbers given under the provisional id stay with it too: that id may come again.
    """
    for condition in state.on(Condition, provisional.id):
        if known is not None and (same := _open_on(state, known, condition)) is not None:
            ending.move_companions(state, condition, same)
            ending.close(state, condition, f"the same fault is open on {known.id}, which this device is")
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
    # What is known of the sources moved along: other timers are paused now than before.
    deadlines.rearm(state)
    return identified


def _rename_in_jobs(state: EngineState, before: str, after: str) -> None:
    for job in state.all(Job):
        if before in job.devices or job.device_id == before:
            devices = tuple(dict.fromkeys(after if each == before else each for each in job.devices))
            device_id = after if job.device_id == before else job.device_id
            state.put(replace(job, devices=devices, device_id=device_id))


def _open_on(state: EngineState, device: Device, condition: Condition) -> Condition | None:
    return state.condition(
        device.id, state.lookup.facts(condition.code).key, condition.origin.injected, condition.origin.report
    )


def _merged(state: EngineState, moved: Cell) -> Cell | None:
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
        case DeviceProcesses() | Shown() | Claimed():
            return moved if state.get(type(moved), moved.device_id) is None else None
        case Source():
            return moved if state.get(Source, moved.name, moved.device_id) is None else None
        case _:
            return moved


def _joined(one: Window | Sighting, other: Window | Sighting) -> tuple[int, ...]:
    return tuple(sorted((*one.occurrences_ns, *other.occurrences_ns)))


# ---------------------------------------------------------------------- forgotten


def forget_by_order(state: EngineState, device: Device, why: str) -> None:
    """How often it was reset stays, as with a device that was replaced: it may come back."""
    _forget(state, device, why, PastResets)
    _emit_end(state, device, f"{device.name} is forgotten by {why}")


def forget_unlisted(state: EngineState, source: str) -> bool:
    """The driver has listed and read all its chips: those that only kernel lines named are none."""
    changed = False
    for device in state.all(Device):
        conditions = state.on(Condition, device.id)
        if device.source or device.kind is not Kind.CHIP or not conditions or state.on(Hold, device.id):
            continue
        if all(each.source == KERNEL_LOG and _vendor(state, each) == source for each in conditions):
            _forget_named(state, device, f"{source} lists no such chip", source)
            changed = True
    return changed


def _vendor(state: EngineState, condition: Condition) -> str:
    row = state.lookup.facts(condition.code).row
    return row.vendor if row is not None else ""


def _forget_named(state: EngineState, device: Device, why: str, source: str = "") -> None:
    """Forget one that only faults have named."""
    _forget(state, device, why)
    _emit_end(state, device, f"{device.name} was known only by its faults: {why}", source)


def _forget_vanished(state: EngineState, device: Device, why: str, source: str) -> None:
    """Forget one that its source no longer lists."""
    _forget(state, device, why)
    _emit_end(state, device, f"{device.name} is forgotten: {why}", source)


def _forget(state: EngineState, device: Device, why: str, *kept: type[Cell]) -> None:
    """Its ordinals stay, for it may come back, and so do cells of these types."""
    for part in state.parts(device.id):
        _forget(state, part, why, *kept)
    ending.forget_companions(state, device.id)
    for condition in state.on(Condition, device.id):
        ending.close(state, condition, why)
    for promotion in state.on(Promotion, device.id):
        frequency.release(state, promotion, why)
    for hold in state.on(Hold, device.id):
        ending.lift(state, hold, why)
    for cell in state.about(device.id):
        if not isinstance(cell, (Ordinal, *kept)):
            state.drop(cell)
    state.drop(device)


def _emit_end(state: EngineState, device: Device, reason: str, source: str = "") -> None:
    """An event of the node ends the id (``was``)."""
    node = state.device(state.node_id)
    emit(state, EventKind.NOTICE, node, source=source, why=reason, evidence={"was": device.id})


# ---------------------------------------------------------------------- baselines


def baseline_seen(state: EngineState, given: BaselineSeen) -> bool:
    """Keep it, unless an order to start over was given since, or no driver lists such a device."""
    if not given.content or state.get(Device, given.identity) is None:
        return False
    before = state.get(Baseline, given.identity)
    after = Baseline(
        device_id=given.identity, source=given.source, number=given.number, content=given.content
    )
    if after == before or (before is not None and before.number != given.number):
        return False
    state.put(after)
    return True


def rebaseline(state: EngineState, given: Operator) -> Answered:
    """A person's order: what the driver sees of the device from now on is right."""
    device = registry.find(state, given.device)
    if device is None:
        return answers.unknown_device(given.device)
    if device.gone or not device.source:
        return answers.not_possible(f"no driver lists {device.name}; wait until one does")
    before = state.get(Baseline, device.id)
    if before is None:
        return answers.not_possible(f"the driver {device.source} remembers nothing of {device.name}")
    state.put(Baseline(device_id=device.id, source=before.source, number=before.number + 1))
    why = f"its present state is right, by order of {holds.caller_text(given)}"
    emit(state, EventKind.NOTICE, device, source=before.source, why=why)
    return answers.accepted(device.id)
