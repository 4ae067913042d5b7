"""Checks of the fields of requests: texts, owners, evidence, and the device that a caller names.

The result is a value, or a refusal that names the field and what would be right. A device is found by its
name, its id or UUID, its PCI address, or another attribute that only this device has. Nothing is guessed:
the result is one device, or a refusal that names the nearest one.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from nodeagent.api.refusal import Refusal, Status
from nodeagent.core.model import Assertion, DeviceView
from nodeagent.core.state.names import part_of
from nodeagent.messages import enums
from nodeagent.messages.pb import types_pb2
from nodeagent.store.records import Publication

MAX_WORD_CHARACTERS: Final = 128
MAX_REASON_CHARACTERS: Final = 512
MAX_OWNER_CHARACTERS: Final = 64
MAX_EVIDENCE: Final = 16
MAX_EVIDENCE_CHARACTERS: Final = 2048
_NOT_IN_OWNERS: Final = ":/#"
_OF_THE_DAEMON: Final = "nodeagent"
_MOST_NAMED: Final = 20
_DIGITS: Final = "0123456789"
_MOST_SHOWN: Final = 128
"""Characters of a name that no device has."""

_OWN: Final = ("pci", "rdma", "label", "place")
"""Attributes by which people and tools know a device: see docs/attributes.md."""

_PCI_ADDRESS: Final = re.compile(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2})(\.[0-7])?")
"""As lspci, NVIDIA's tools and the kernel write it: with or without a domain, which has four to eight digits,
and in lines of Xids without a function.
"""


def word(field: str, text: str, most_characters: int = MAX_WORD_CHARACTERS) -> str:
    if not 0 < len(text) <= most_characters or not text.isprintable() or not text.strip():
        wanted = f"1 to {most_characters} printable characters are needed"
        raise Refusal(Status.INVALID_ARGUMENT, f"{field}: {wanted}, not {text[:40]!r}")
    return text


def reason(text: str) -> str:
    return word("reason", text, MAX_REASON_CHARACTERS)


def optional_reason(text: str) -> str:
    return reason(text) if text else ""


def owner(text: str, otherwise: str) -> str:
    """The owner of an order; ``otherwise`` where none is named."""
    if not text:
        return otherwise
    if not is_owner(text):
        wanted = f'1 to {MAX_OWNER_CHARACTERS} printable characters without spaces and ":/#"'
        raise Refusal(Status.INVALID_ARGUMENT, f"owner: {wanted} are needed, not {text[:40]!r}")
    return text


def is_owner(text: str) -> bool:
    """Whether a hold may be set in this name: not in that of a caller ("uid:0"), nor in the daemon's own."""
    if not 0 < len(text) <= MAX_OWNER_CHARACTERS or text == _OF_THE_DAEMON:
        return False
    return text.isprintable() and not any(each.isspace() or each in _NOT_IN_OWNERS for each in text)


def evidence(given: Mapping[str, str]) -> dict[str, str]:
    if len(given) > MAX_EVIDENCE:
        raise Refusal(Status.INVALID_ARGUMENT, f"evidence: {len(given)} entries; at most {MAX_EVIDENCE}")
    for key, value in given.items():
        word("evidence", key)
        if len(value) > MAX_EVIDENCE_CHARACTERS:
            problem = f"{key} has {len(value)} characters; at most {MAX_EVIDENCE_CHARACTERS}"
            raise Refusal(Status.INVALID_ARGUMENT, f"evidence: {problem}")
        if not value.isprintable():
            problem = f"{key}: printable characters are needed, not {value[:40]!r}"
            raise Refusal(Status.INVALID_ARGUMENT, f"evidence: {problem}")
    return dict(given)


def assertion(number: types_pb2.Assertion, where_not_set: Assertion | None) -> Assertion:
    """``where_not_set`` None: it must be set."""
    if number == types_pb2.ASSERTION_UNSPECIFIED and where_not_set is not None:
        return where_not_set
    given = enums.ASSERTION_OF.get(number)
    if given is None:
        words = ", ".join(types_pb2.Assertion.Name(known) for known in enums.ASSERTION_OF)
        raise Refusal(Status.INVALID_ARGUMENT, f"assertion: {number} is not one of {words}")
    return given


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
            problem = f"{wanted[:_MOST_SHOWN]!r} is an attribute of {names}; use a name"
            raise Refusal(Status.INVALID_ARGUMENT, f"{field}: {problem}")
        if not found:
            raise self.unknown(field, wanted)
        return found[0]

    def unknown(self, field: str, wanted: str, why: str = "") -> Refusal:
        """The refusal for a name that no device has."""
        problem = f"{wanted[:_MOST_SHOWN]!r} is not known"
        near = nearest_name(_address(wanted) or wanted[:_MOST_SHOWN], [*self._exact, *self._others])
        nearest = f"the nearest is {self._shown(near)}" if near else ""
        there = ", ".join(device.name for device in self._devices[:_MOST_NAMED]) or "none yet"
        more = len(self._devices) - _MOST_NAMED
        listed = f"there are: {there}{f' and {more} more' if more > 0 else ''}"
        text = "; ".join(filter(None, (problem, why, nearest, listed)))
        return Refusal(Status.NOT_FOUND, f"{field}: {text}")

    def _shown(self, word: str) -> str:
        device = self._exact.get(word) or self._others[word][0]
        return word if word == device.name else f"{word}, which is {device.name}"


def nearest_name(wanted: str, names: Iterable[str]) -> str:
    """The name that is most like it in any case of letters; a number alone is that of a chip, of which there
    are the most. "" where none is near.
    """
    by_lower = {name.casefold(): name for name in names}
    if wanted.isdigit():
        stems = Counter(each.rstrip(_DIGITS) for each in by_lower)
        numbered = [each for each in by_lower if each == each.rstrip(_DIGITS) + wanted]
        near = sorted(numbered, key=lambda each: -stems[each.rstrip(_DIGITS)])
    else:
        near = get_close_matches(wanted.casefold(), by_lower, n=1)
    return next((by_lower[each] for each in near), "")


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
