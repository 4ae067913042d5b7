"""Identity: which part a name stands for, and what happens when another part answers to it.

The part's own id is the key of everything known of it. Only a valid, different id replaces; a
renumbering changes names alone.
"""

from dataclasses import replace

from nodeagent.core import clearing, frequency
from nodeagent.core.model import NODE, Device, DeviceGone, DeviceSeen, EventKind, Kind, Ordinal
from nodeagent.core.notices import notice
from nodeagent.core.state import State
from nodeagent.core.telling import tell

MAX_DEVICES = 1024

_PROVISIONAL = "slot:"
_DEVICE_KINDS = {Kind.HOST: Kind.NODE, Kind.PUBLIC: Kind.CHIP}


def find(state: State, name: str) -> Device | None:
    """The device of that name, id or PCI address, None if there is none."""
    device_id = state.names.get(name) or state.by_pci.get(name)
    return state.get(Device, device_id if device_id is not None else name)


def resolve(state: State, name: str, kind: Kind | None) -> Device | None:
    """As ``find``, else a provisional device under that name; None when there are too many already."""
    device = find(state, name)
    if device is not None or len(state.cells[Device]) >= MAX_DEVICES:
        return device
    if name == NODE:
        device_kind = Kind.NODE
    else:
        device_kind = _DEVICE_KINDS.get(kind, kind) if kind is not None else Kind.CHIP
    device = Device(
        id=f"{_PROVISIONAL}{name}",
        name=name,
        kind=device_kind,
        vendor="",
        source="",
        attributes={"pci": name} if _is_pci_address(name) else {},
    )
    state.put(device)
    return device


def seen(state: State, given: DeviceSeen) -> bool:
    """A driver reads a device: it is new, known, renamed, identified at last, replaced, or refused."""
    in_slot = find(state, given.device) or find(state, given.attributes.get("pci", ""))
    if not given.identity:
        return _seen_without_identity(state, given, in_slot)
    known = state.get(Device, given.identity)
    if known is not None:
        if _is_double(known, given):
            return _refuse(state, given, known)
        return _update(state, known, given)
    if in_slot is None:
        return _update(state, None, given)
    if in_slot.id.startswith(_PROVISIONAL):
        return _update(state, _identify(state, in_slot, given.identity), given)
    _replace_part(state, in_slot)
    _update(state, None, given, EventKind.DEVICE_REPLACED)
    return True


def gone(state: State, given: DeviceGone) -> bool:
    device = find(state, given.device)
    if device is None or device.gone:
        return False
    state.put(replace(device, gone=given.reason or "gone"))
    tell(state, EventKind.DEVICE_GONE, state.device(device.id), source=given.source, why=given.reason)
    return True


def _seen_without_identity(state: State, given: DeviceSeen, in_slot: Device | None) -> bool:
    if in_slot is None or in_slot.id.startswith(_PROVISIONAL):
        return _update(state, in_slot, given)
    if not in_slot.seen:
        return False
    state.put(replace(in_slot, seen=False))
    return True


def _update(
    state: State, known: Device | None, given: DeviceSeen, kind: EventKind = EventKind.DEVICE_SEEN
) -> bool:
    """Put the device as the driver describes it now; tell it only where it was not there before."""
    pci = given.attributes.get("pci", given.device)
    after = Device(
        id=known.id if known else given.identity or f"{_PROVISIONAL}{pci}",
        name=given.device,
        kind=given.kind,
        vendor=given.vendor,
        source=given.source,
        attributes=given.attributes,
        seen=True,
    )
    if known == after:
        return False
    other = state.get(Device, state.names.get(given.device, ""))
    if known is not None and other is not None and other.id != known.id:
        state.put(replace(other, name=known.name))
    state.put(after)
    if known is None or known.gone or not known.seen or kind is not EventKind.DEVICE_SEEN:
        why = given.identity or "its identity could not be read"
        tell(state, kind, after, source=given.source, why=why, evidence=given.attributes)
    return True


def _identify(state: State, provisional: Device, identity: str) -> Device:
    """The id has appeared: everything kept under the provisional one moves to it."""
    state.drop(provisional)
    identified = replace(provisional, id=identity)
    state.put(identified)
    for cell in state.about(provisional.id):
        state.drop(cell)
        state.put(replace(cell, device_id=identity))
    return identified


def _replace_part(state: State, old: Device) -> None:
    """Another part sits in the slot: close and forget what was known of the old one; its ordinals stay."""
    for condition in state.conditions_on(old.id):
        clearing.close(state, condition, EventKind.DEVICE_REPLACED.value)
    for promotion in state.promotions_on(old.id):
        frequency.release(state, promotion, EventKind.DEVICE_REPLACED.value)
    for cell in state.about(old.id):
        if not isinstance(cell, Ordinal):
            state.drop(cell)
    state.drop(old)


def _is_double(known: Device, given: DeviceSeen) -> bool:
    if known.gone or not known.seen:
        return False
    here, there = given.attributes.get("pci", ""), known.attributes.get("pci", "")
    return bool(here and there) and here != there


def _refuse(state: State, given: DeviceSeen, known: Device) -> bool:
    why = f"{given.device} claims the identity {given.identity} of {known.name}: it is refused"
    return notice(state, known, code="", why=why, source=given.source)


def _is_pci_address(name: str) -> bool:
    """``dddd:bb:dd.f`` as the kernel writes it."""
    head, _, function = name.rpartition(".")
    return len(head.split(":")) == 3 and function.isdigit()
