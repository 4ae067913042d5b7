"""Whether the devices that are asked for are those that are there, and exactly those that are reset together.

What a device says of itself counts; what the request says of it counts only where it says nothing. Pure.
"""

from collections.abc import Collection, Mapping, Sequence

from nodeagent.drivers.shared.resetting import Member, ResetRefused
from nodeagent.reset_unit.exchange import request
from nodeagent.wire import Device


def members(
    asked: Sequence[request.Device],
    seen: Mapping[str, Device],
    groups: Mapping[str, str],
    missing: Collection[str] = (),
    unlisted: str = "",
) -> tuple[Member, ...]:
    """The members in the order of the request. ``groups``: of each seen device the group, "" where it is not
    known. A device that the library does not list may be one of those that PCI has and the library lacks, by
    their addresses in ``missing``; ``unlisted`` is its group, "" where none can be reset. One of them that
    nobody asked for would be reset with that group, and whoever is on it was not looked for.

    Raises ``ResetRefused``.
    """
    found = tuple(_member(each, seen, missing, bool(unlisted)) for each in asked)
    groups = {**{each.name: unlisted for each in found}, **groups}
    group = groups.get(asked[0].name, "")
    if not group:
        raise ResetRefused(f"which devices are reset together with {asked[0].name} is unknown")
    together = sorted(name for name, of in groups.items() if of == group)
    if together != sorted(each.name for each in asked):
        named = ", ".join(each.name for each in asked)
        how = "is reset alone" if len(together) == 1 else "are reset together"
        raise ResetRefused(f"{', '.join(together)} {how}; asked for was {named}")
    unasked = sorted(set(missing) - {member.pci for member in found})
    if unasked and group == unlisted:
        raise ResetRefused(
            f"PCI lists {', '.join(unasked)}, and the library does not: what sits there is reset together "
            "with the others, and nobody has asked for it and its processes are unknown; power-cycle the node"
        )
    return found


def as_counted(member: Member, seen: Mapping[str, Device]) -> request.Device:
    """The device by what it says of itself: an id or an address that nobody has read would make another one
    of it.
    """
    there = seen.get(member.name)
    if there is None:
        return request.Device(name=member.name, pci=member.pci)
    return request.Device(name=member.name, identity=there.identity, pci=there.attributes.get("pci", ""))


def _member(
    asked: request.Device, seen: Mapping[str, Device], missing: Collection[str], may_be_unlisted: bool
) -> Member:
    there = seen.get(asked.name)
    if there is None and asked.pci in missing and may_be_unlisted:
        return Member(name=asked.name, identity=asked.identity, pci=asked.pci)
    if there is None and asked.pci in missing:
        raise ResetRefused(
            f"the library does not list {asked.name}, and PCI does: it has dropped, and cannot be reset by a "
            "new process; power-cycle the node"
        )
    if there is None:
        raise ResetRefused(f"the library does not list {asked.name}")
    if there.identity and asked.identity and there.identity != asked.identity:
        raise ResetRefused(
            f"another part sits in the place of {asked.name}: {there.identity}, not {asked.identity}"
        )
    pci = there.attributes.get("pci", "")
    if pci and asked.pci and pci != asked.pci:
        raise ResetRefused(f"{asked.name} sits at {pci}, not at {asked.pci}")
    for other in seen.values():
        if other is not there and asked.pci and asked.pci == other.attributes.get("pci"):
            raise ResetRefused(f"{other.device} sits at {asked.pci}, not {asked.name}")
        if other is not there and asked.identity and asked.identity == other.identity:
            raise ResetRefused(f"{other.device} is {asked.identity}, not {asked.name}")
    return Member(
        name=asked.name,
        identity=there.identity or asked.identity,
        attributes=there.attributes,
        pci=pci or asked.pci,
    )
