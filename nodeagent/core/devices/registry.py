"""Finds the device of a name; makes a provisional one for an unknown name.

What a driver's reading of a part changes is ``identity``'s. It ends nothing.
"""

from dataclasses import replace

from nodeagent.core.devices import instances
from nodeagent.core.model import (
    ALL_DEVICES,
    NODE,
    Device,
    Kind,
)
from nodeagent.core.state import limits
from nodeagent.core.state.names import part_of
from nodeagent.core.state.state import State

PROVISIONAL = "slot:"

_DEVICE_KINDS = {Kind.HOST: Kind.NODE, Kind.PUBLIC: Kind.CHIP}


def identity_of(device_id: str) -> str:
    """What a driver has read of the part itself; "" where it is known by its place alone."""
    return "" if device_id.startswith(PROVISIONAL) else device_id


def find(state: State, name: str) -> Device | None:
    """The device of that name, id or PCI address, None if there is none."""
    device_id = state.names.get(name) or state.names.by_pci.get(name)
    found = state.get(Device, device_id if device_id is not None else name)
    chip_name, part = part_of(name)
    if found is not None or not part or (chip := find(state, chip_name)) is None:
        return found
    return state.get(Device, f"{chip.id}/{part}")


def located(state: State, name: str) -> tuple[Device | None, str]:
    """As ``find``; of a part that nobody has named before, its chip and what the part is called there."""
    device = find(state, name)
    chip_name, part = part_of(name)
    if device is not None or not part:
        return device, ""
    return find(state, chip_name), part


def resolve(state: State, name: str, kind: Kind | None) -> Device | None:
    """As ``find``, else a provisional device under that name; None where there are too many, or no name.

    ``kind`` is that of the fault which came on it, None if nobody knows.
    """
    device = find(state, name)
    if device is not None:
        return _as_chip(state, device) if kind is Kind.CHIP else device
    if not limits.room_for_device(state) or name in ("", ALL_DEVICES):
        return None
    chip_name, part = part_of(name)
    if part:
        return _part(state, resolve(state, chip_name, kind), part)
    if name == NODE:
        device_kind = Kind.NODE
    else:
        device_kind = _DEVICE_KINDS.get(kind, kind) if kind is not None else Kind.CHIP
    device = Device(
        id=f"{PROVISIONAL}{name}",
        name=name,
        kind=device_kind,
        vendor="",
        source="",
        attributes={"pci": name} if _is_pci_address(name) else {},
    )
    state.put(device)
    return device


def _part(state: State, chip: Device | None, part: str) -> Device | None:
    if chip is None or not limits.room_for_part(state, chip):
        return None
    found = instances.new(chip, part)
    state.put(found)
    return found


def _as_chip(state: State, device: Device) -> Device:
    """A provisional link becomes a chip when a chip's fault comes on it."""
    if device.kind is not Kind.LINK or not device.id.startswith(PROVISIONAL) or device.seen:
        return device
    chip = replace(device, kind=Kind.CHIP)
    state.put(chip)
    return chip


def unread(state: State) -> None:
    """After a reboot no device was read yet, and any may sit in another slot."""
    for device in state.all(Device):
        if device.seen:
            state.put(replace(device, seen=False))


def has_been_read(state: State, device: Device, source: str) -> bool:
    """Its source has read it. True if that was the first time since it was listed."""
    if not device.unread or device.gone or device.source != source:
        return False
    state.put(replace(device, unread=False))
    return True


def _is_pci_address(name: str) -> bool:
    """``dddd:bb:dd.f`` as the kernel writes it."""
    head, _, function = name.rpartition(".")
    return len(head.split(":")) == 3 and function.isdigit()
