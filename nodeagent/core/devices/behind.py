"""Which chips are behind a link: those that work through it. It judges nothing.

A PCI Express bridge has behind it the chips that name it among the bridges above them (``upstream``). A
network port says itself which chips use it (``chips``: names, ids or PCI addresses, comma separated).
"""

from nodeagent.core.model import Device, Kind
from nodeagent.core.state.names import natural
from nodeagent.core.state.state import State

CHIPS_BEHIND = "chips_behind"
"""The key in the evidence of an event about a link: the names of the chips behind it, comma separated."""


def is_behind(chip: Device, link: Device) -> bool:
    """Whether ``chip`` is a chip, and works through ``link``."""
    if chip.kind is not Kind.CHIP:
        return False
    pci = chip.attributes.get("pci")
    bridge = link.attributes.get("pci")
    if bridge is not None and bridge in chip.attributes.get("upstream", "").split(","):
        return True
    named = link.attributes.get("chips", "").split(",")
    return chip.name in named or chip.id in named or (pci is not None and pci in named)


def names_behind(state: State, link: Device) -> str:
    """The names of the chips behind it, in the order in which people count; "" for none, or no link."""
    if link.kind is not Kind.LINK:
        return ""
    names = (device.name for device in state.all(Device) if not device.gone and is_behind(device, link))
    return ", ".join(sorted(names, key=natural))
