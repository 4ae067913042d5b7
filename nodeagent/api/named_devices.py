"""Which of the published devices a caller means: by name, id or UUID, PCI address, or what else only it has.

It guesses nothing: one device, or a refusal that names the nearest.
"""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Final

from nodeagent.api.refusal import Refusal, Status
from nodeagent.core.model import DeviceView
from nodeagent.core.state.names import part_of
from nodeagent.store.records import Publication

_MOST_NAMED: Final = 20
_MOST_SHOWN: Final = 128
"""Characters of a name that no device has."""

_OWN: Final = ("pci", "rdma", "label", "place")
"""Attributes by which people and tools know a device: see docs/attributes.md."""

_PCI_ADDRESS: Final = re.compile(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2})(\.[0-7])?")
"""As lspci, NVIDIA's tools and the kernel write it: with or without a domain, which has four to eight digits,
and in lines of Xids without a function.
"""


class DeviceNames:
    """The devices by all that they are called."""

    def __init__(self, devices: Iterable[DeviceView]) -> None:
        self._devices: Sequence[DeviceView] = tuple(devices)
        self._exact: dict[str, DeviceView] = {}
        self._others: dict[str, list[DeviceView]] = {}
        self._parts: dict[str, str] = {}
        for device in self._devices:
            self._exact.setdefault(device.name, device)
            self._exact.setdefault(device.id, device)
            others = (device.id.casefold(), *(device.attributes.get(key, "") for key in _OWN))
            for word in dict.fromkeys(filter(None, others)):
                self._others.setdefault(word, []).append(device)
            for part, uuid in instances_of(device):
                self._parts[uuid.casefold()] = f"{device.name}/{part}"

    def name_of_part(self, wanted: str) -> str:
        """That of an instance which is called by the UUID of its MIG device; else what was wanted."""
        return self._parts.get(wanted.casefold(), wanted)

    def meant(self, wanted: str) -> Sequence[DeviceView]:
        """The one of that name or id, else all that are known by the word."""
        if (exact := self._exact.get(wanted)) is not None:
            return (exact,)
        wanted = self.name_of_part(wanted)
        chip_name, part = part_of(wanted)
        if part:
            named = (self._exact.get(f"{chip.name}/{part}") for chip in self.meant(chip_name))
            return [device for device in named if device is not None]
        words = (wanted, wanted.casefold(), _address(wanted))
        return next((self._others[word] for word in words if word in self._others), ())

    def one(self, field: str, wanted: str) -> DeviceView:
        """The device that is meant. Raises Refusal, which names the field."""
        found = self.meant(wanted)
        if len(found) > 1:
            names = ", ".join(device.name for device in found)
            problem = f"{wanted[:_MOST_SHOWN]!r} is said of {names}; use a name"
            raise Refusal(Status.INVALID_ARGUMENT, f"{field}: {problem}")
        if not found:
            raise self.unknown(field, wanted)
        return found[0]

    def unknown(self, field: str, wanted: str, why: str = "") -> Refusal:
        """What is said of a name that no device has."""
        problem = f"{wanted[:_MOST_SHOWN]!r} is not known"
        near = get_close_matches(_address(wanted) or wanted[:_MOST_SHOWN], [*self._exact, *self._others], n=1)
        nearest = [f"the nearest is {self._shown(word)}" for word in near]
        there = ", ".join(device.name for device in self._devices[:_MOST_NAMED]) or "none yet"
        said = "; ".join((problem, *filter(None, (why,)), *nearest, f"there are: {there}"))
        return Refusal(Status.NOT_FOUND, f"{field}: {said}")

    def _shown(self, word: str) -> str:
        device = self._exact.get(word) or self._others[word][0]
        return word if word == device.name else f"{word}, which is {device.name}"


def instances_of(chip: DeviceView) -> list[tuple[str, str]]:
    """The instances that its driver lists, such as ``gi2``, each with the UUID of a MIG device on it."""
    listed = (each.partition("=") for each in chip.attributes.get("mig_devices", "").split(","))
    return [(part, uuid) for part, _, uuid in listed if uuid]


def known_device(current: Publication, wanted: str) -> DeviceView:
    """Raises Refusal, naming the devices there are."""
    return DeviceNames(current.view.devices).one("device", wanted)


def _address(text: str) -> str:
    """The PCI address as the kernel writes it, "" where it is none."""
    match = _PCI_ADDRESS.fullmatch(text.lower())
    if match is None:
        return ""
    domain, slot, function = match.groups()
    return f"{int(domain or '0', 16):04x}:{slot}{function or '.0'}"
