"""Parts of a chip that are given to jobs by themselves: MIG instances, devices named ``gpu3/gi5``.

A driver lists the chip. A part is known once a fault of it was reported, as with the ports of a switch. A
part is observed as its chip is. What concerns the chip concerns each part of it, never the other way; what
only a reset of the chip repairs is a fault of the chip, whichever part was named.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from nodeagent.core.catalog.classify import classify
from nodeagent.core.catalog.lookup import Facts
from nodeagent.core.model import Device, Kind, Signal
from nodeagent.core.state import limits, names
from nodeagent.core.state.queries import PART_OF
from nodeagent.core.state.state import State
from nodeagent.core.verdicts.judge import BELOW_RESET


def addressed(state: State, signal: Signal, facts: Facts) -> Signal:
    """The signal as one of the chip, where it names a part and does not concern that alone. Another system
    says itself what its report is about (``faults.reported``).
    """
    chip, part = names.part_of(signal.device)
    if not part or signal.report is not None:
        return signal
    level = classify(state.lookup, signal.source, facts, signal.severity).level
    is_of_the_part = level in BELOW_RESET and not (facts.row is not None and facts.row.notice)
    return signal if is_of_the_part else replace(signal, device=chip)


def id_of(chip: Device, part: str) -> str:
    return f"{chip.id}/{part}"


def why_none(chip: Device) -> str:
    """Why a device has no parts, "" where it may have some."""
    if chip.kind is not Kind.CHIP:
        return f"{chip.name} is no chip"
    is_whole = chip.attributes.get("mig") == "disabled"
    return f"{chip.name} is not divided into instances" if is_whole else ""


def without_room(state: State, device_ids: Iterable[str]) -> str:
    """Whether each of these that is not known yet may become a part of its chip: "", or the name of a chip
    that has no room.
    """
    arriving = Counter(names.part_of(each)[0] for each in device_ids if state.get(Device, each) is None)
    for chip_id, count in arriving.items():
        if len(state.parts(chip_id)) + count > limits.MAX_PARTS_ON_CHIP:
            return state.device(chip_id).name
    if arriving and len(state.cells[Device]) + arriving.total() > limits.MAX_DEVICES:
        return state.device(next(iter(arriving))).name
    return ""


def new(chip: Device, part: str) -> Device:
    """A part that nobody knew before."""
    return Device(
        id=id_of(chip, part),
        name=f"{chip.name}/{part}",
        kind=Kind.INSTANCE,
        vendor=chip.vendor,
        source=chip.source,
        attributes={PART_OF: chip.id},
        seen=True,
    )


def follow(state: State, chip: Device) -> None:
    """The chip is described anew: its parts are named by it."""
    for part in state.parts(chip.id):
        _, suffix = names.part_of(part.id)
        after = replace(
            part, name=f"{chip.name}/{suffix}", vendor=chip.vendor, source=chip.source, seen=chip.seen
        )
        if after != part:
            state.put(after)
