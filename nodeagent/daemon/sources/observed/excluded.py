"""Which devices the configuration excludes, by patterns of their names. Pure: it marks them where they are
listed.
"""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final

from msgspec.structs import replace

from nodeagent.core.model.traits import EXCLUDED, NO_RESET
from nodeagent.wire import Device

WHY: Final = "excluded by agent.exclude_devices"


def marked(devices: Iterable[Device], patterns: Sequence[str]) -> list[Device]:
    """The same devices. Those that a pattern names, whole or by their PCI address, say why they are let
    alone.
    """
    return [_marked(device, patterns) for device in devices]


def _marked(device: Device, patterns: Sequence[str]) -> Device:
    names = {device.device, device.attributes.get("pci", device.device)}
    if not any(fnmatchcase(name, pattern) for name in names for pattern in patterns):
        return device
    return replace(device, attributes={**device.attributes, EXCLUDED: WHY, NO_RESET: WHY})
