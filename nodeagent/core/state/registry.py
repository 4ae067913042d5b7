"""Which device a name means: a device, a part of a chip such as ``gpu3/gi5``, or a new, provisional one; and
which chips work through a link.

A driver lists the chip. A part (a MIG instance) is known once a fault of it was reported, as with the ports
of a switch, and is observed as its chip is. What concerns the chip concerns each part of it, never the other
way; what only a reset of the chip repairs is a fault of the chip, whichever part was named.

A PCI Express bridge has behind it the chips that name it among the bridges above them (``upstream``). A
network port lists the chips that use it (``chips``: names, ids or PCI addresses, comma separated).
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from nodeagent.core.catalog.levels import BELOW_RESET
from nodeagent.core.catalog.lookup import Facts, classify
from nodeagent.core.model import (
    ALL_DEVICES,
    NODE,
    Device,
    DeviceView,
    Kind,
    Signal,
)
from nodeagent.core.model.traits import PART_OF, PCI, Traits
from nodeagent.core.state import limits
from nodeagent.core.state.names import natural, part_of
from nodeagent.core.state.state import EngineState

PROVISIONAL = "slot:"

_DEVICE_KINDS = {Kind.HOST: Kind.NODE, Kind.PUBLIC: Kind.CHIP}

CHIPS_BEHIND = "chips_behind"
"""The key in the evidence of an event about a link: the names of the chips behind it, comma separated."""


def find(state: EngineState, name: str) -> Device | None:
    """The device of that name, id or PCI address, None if there is none."""
    device_id = state.names.get(name) or state.names.by_pci.get(name)
    found = state.get(Device, device_id if device_id is not None else name)
    chip_name, part = part_of(name)
    if found is not None or not part or (chip := find(state, chip_name)) is None:
        return found
    return state.get(Device, f"{chip.id}/{part}")


def located(state: EngineState, name: str) -> tuple[Device | None, str]:
    """As ``find``; of a part that was not named before, its chip and the name of the part on it."""
    device = find(state, name)
    chip_name, part = part_of(name)
    if device is not None or not part:
        return device, ""
    return find(state, chip_name), part


def resolve(state: EngineState, name: str, kind: Kind | None) -> Device | None:
    """As ``find``, else a provisional device under that name; None where there are too many, or no name.

    ``kind`` is that of the fault which came on it, None if unknown.
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
        attributes={PCI: name} if _is_pci_address(name) else {},
    )
    state.put(device)
    return device


def _part(state: EngineState, chip: Device | None, part: str) -> Device | None:
    if chip is None or not limits.room_for_part(state, chip):
        return None
    found = new_part(chip, part)
    state.put(found)
    return found


def _as_chip(state: EngineState, device: Device) -> Device:
    """A provisional link becomes a chip when a chip's fault comes on it."""
    if device.kind is not Kind.LINK or not device.id.startswith(PROVISIONAL) or device.seen:
        return device
    chip = replace(device, kind=Kind.CHIP)
    state.put(chip)
    return chip


def _is_pci_address(name: str) -> bool:
    """``dddd:bb:dd.f`` as the kernel writes it."""
    head, _, function = name.rpartition(".")
    return len(head.split(":")) == 3 and function.isdigit()


def identity_of(device_id: str) -> str:
    """What a driver has read of the part itself; "" where it is known by its place alone."""
    return "" if device_id.startswith(PROVISIONAL) else device_id


def has_been_read(state: EngineState, device: Device, source: str) -> bool:
    """Its source has read it. True if that was the first time since it was listed."""
    if not device.unread or device.gone or device.source != source:
        return False
    state.put(replace(device, unread=False))
    return True


def all_unread(state: EngineState) -> None:
    """After a reboot no device was read yet, and any may sit in another slot."""
    for device in state.all(Device):
        if device.seen:
            state.put(replace(device, seen=False))


# ---------------------------------------------------------------------- parts of a chip


def addressed(state: EngineState, signal: Signal, facts: Facts) -> Signal:
    """The signal as one of the chip, where it names a part and does not concern that alone. The report of
    another system names its device itself (``faults.reported``).
    """
    chip, part = part_of(signal.device)
    if not part or signal.report is not None:
        return signal
    level = classify(state.lookup, signal.source, facts, signal.severity).level
    is_of_the_part = level in BELOW_RESET and not (facts.row is not None and facts.row.notice)
    return signal if is_of_the_part else replace(signal, device=chip)


def part_id(chip: Device, part: str) -> str:
    return f"{chip.id}/{part}"


def new_part(chip: Device, part: str) -> Device:
    """A part that was not known before."""
    return Device(
        id=part_id(chip, part),
        name=f"{chip.name}/{part}",
        kind=Kind.INSTANCE,
        vendor=chip.vendor,
        source=chip.source,
        attributes={PART_OF: chip.id},
        seen=True,
    )


def rename_parts(state: EngineState, chip: Device) -> None:
    """The chip is described again: its parts are named by it."""
    for part in state.parts(chip.id):
        _, suffix = part_of(part.id)
        after = replace(
            part, name=f"{chip.name}/{suffix}", vendor=chip.vendor, source=chip.source, seen=chip.seen
        )
        if after != part:
            state.put(after)


def why_no_parts(chip: Device) -> str:
    """Why a device has no parts, "" where it may have some."""
    if chip.kind is not Kind.CHIP:
        return f"{chip.name} is no chip"
    return f"{chip.name} is not divided into instances" if chip.traits.is_whole else ""


def chip_without_room(state: EngineState, device_ids: Iterable[str]) -> str:
    """Whether each of these that is not known yet may become a part of its chip: "", or the name of a chip
    that has no room.
    """
    arriving = Counter(part_of(each)[0] for each in device_ids if state.get(Device, each) is None)
    for chip_id, count in arriving.items():
        if len(state.parts(chip_id)) + count > limits.MAX_PARTS_ON_CHIP:
            return state.device(chip_id).name
    if arriving and len(state.cells[Device]) + arriving.total() > limits.MAX_DEVICES:
        return state.device(next(iter(arriving))).name
    return ""


# ---------------------------------------------------------------------- links


def is_behind(chip: Device | DeviceView, link: Device | DeviceView) -> bool:
    """Whether ``chip`` is a chip, and works through ``link``."""
    if chip.kind is not Kind.CHIP:
        return False
    one, other = Traits(chip.attributes), Traits(link.attributes)
    if other.pci and other.pci in one.upstream:
        return True
    named = other.chips
    return chip.name in named or chip.id in named or (one.pci != "" and one.pci in named)


def names_behind(state: EngineState, link: Device) -> str:
    """The names of the chips behind it, in the order in which people count; "" for none, or no link."""
    if link.kind is not Kind.LINK:
        return ""
    names = (device.name for device in state.all(Device) if not device.gone and is_behind(device, link))
    return ", ".join(sorted(names, key=natural))
