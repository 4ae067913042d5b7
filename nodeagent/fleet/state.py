"""The state of the nodes that are followed: whether each answers, and the verdicts of its devices.

Values and one collection of them. No clock is read and no node is asked here: what a node sent, and when, are
arguments.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from nodeagent.client import Condition, Device, Event, EventKind, Handling, Kind, Position, Verdict
from nodeagent.core.model import decides
from nodeagent.fleet.nodes import Endpoint

_STRICTNESS: Final = {verdict: place for place, verdict in enumerate(Verdict)}
_URGENCY: Final = {handling: place for place, handling in enumerate(Handling)}

MAX_PARTS: Final = 1024
"""Devices of a node: as many as a daemon may have (``core.state.limits.MAX_DEVICES``)."""

MAX_PART_CHARACTERS: Final = 32 * 1024
"""Of the id, the name and the codes of one device: a daemon keeps at most 256 conditions of a device."""

MAX_CAUSE_CHARACTERS: Final = 200
"""Of the first reason of a device in words; ``nodeagent why`` has all of it."""

MAX_NAME_CHARACTERS: Final = 253
"""Of the name that a node gives itself: those of a host name (RFC 1035)."""

MAX_STORE_CHARACTERS: Final = 128
"""Of the id of a store; a daemon's is a UUID."""

_WAS: Final = "was"
"""The evidence of an event that ends an id: the device is forgotten, or has another id from here on."""

_OF_THE_LIST: Final = frozenset({EventKind.DEVICE_SEEN, EventKind.DEVICE_GONE, EventKind.DEVICE_REPLACED})


class TooMuch(ValueError):
    """The node sends more devices, or a longer id of its store, than a daemon may have."""


def check_store(uuid: str) -> None:
    """Raises ``TooMuch``: the id is kept, and written down with each position."""
    if len(uuid) > MAX_STORE_CHARACTERS:
        raise TooMuch(f"the id of its store has more than {MAX_STORE_CHARACTERS} characters")


class Contact(StrEnum):
    """``refuses``: it answers, but not us; somebody has to change something."""

    NEW = "new"
    ANSWERS = "answers"
    AWAY = "away"
    REFUSES = "refuses"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceState:
    """A device of the node; the node itself is ``node``. ``codes`` are those that count for its verdict,
    ``cause`` is the first of its reasons in words. ``since`` is when it got this verdict, as far as is known.
    """

    name: str
    kind: Kind | None
    verdict: Verdict
    handling: Handling
    codes: tuple[str, ...]
    cause: str = ""
    since: datetime | None = None

    @property
    def decides(self) -> bool:
        """Whether its verdict is the node's too."""
        return decides(self.kind, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeState:
    """``said_name`` is what the node calls itself. ``parts`` are by id, as of ``position``; they are what was
    last known where it does not answer. ``reason`` is why it does not, ``since`` when that began.
    """

    endpoint: Endpoint
    contact: Contact = Contact.NEW
    reason: str = ""
    since: datetime | None = None
    said_name: str = ""
    position: Position | None = None
    parts: Mapping[str, DeviceState] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """The strictest of the node and its chips; UNKNOWN where it does not answer."""
        if self.contact is not Contact.ANSWERS:
            return Verdict.UNKNOWN
        return max(
            (part.verdict for part in self.deciding), key=_STRICTNESS.__getitem__, default=Verdict.UNKNOWN
        )

    @property
    def handling(self) -> Handling:
        """The strictest of the node and its chips; NONE where it does not answer."""
        if self.contact is not Contact.ANSWERS:
            return Handling.NONE
        return max((part.handling for part in self.deciding), key=_URGENCY.__getitem__, default=Handling.NONE)

    @property
    def label(self) -> str:
        """A name for people: what the node calls itself, if our name for it is only its address."""
        is_address = bool(self.endpoint.certificate_name)
        return self.said_name if is_address and self.said_name else self.endpoint.name

    @property
    def deciding(self) -> list[DeviceState]:
        return [part for part in self.parts.values() if part.decides]

    @property
    def chips(self) -> list[DeviceState]:
        return [part for part in self.parts.values() if part.kind is Kind.CHIP]


def with_devices(
    state: NodeState, devices: Iterable[Device], position: Position, conditions: Iterable[Condition] = ()
) -> NodeState:
    """The whole list, as of a position: what was known before is forgotten. Raises ``TooMuch``.

    Since when a device has its verdict is not in the list: where it had the same one before it is that time,
    else the time when the oldest condition opened that counts for it.
    """
    opened = {each.id: each.opened_at for each in conditions}
    parts = {}
    for device in devices:
        times = [opened[reason.id] for reason in device.reasons if reason.id in opened]
        since = _since_before(state, device.id, device.verdict) or min(times, default=None)
        parts[device.id] = _part(device.id, device.name, device.kind, device, since)
    return replace(state, parts=_bounded(parts), position=position)


def with_event(state: NodeState, event: Event) -> NodeState:
    """One device as it is after an event, and without the device whose id the event ends. An event that the
    list already contains changes nothing. Raises ``TooMuch``.
    """
    known, new = state.position, event.position
    if known is not None and (known.uuid, known.epoch) == (new.uuid, new.epoch) and known.seq >= new.seq:
        return state
    parts = dict(state.parts)
    if was := event.evidence.get(_WAS):
        parts = {each: part for each, part in parts.items() if each != was and not each.startswith(f"{was}/")}
    before = state.parts.get(event.device_id)
    since = before.since if before is not None and before.verdict is event.verdict else event.at
    parts[event.device_id] = _part(event.device_id, event.device, event.device_kind, event, since)
    return replace(state, parts=_bounded(parts), position=new)


def changes_the_list(event: Event) -> bool:
    """Whether devices came or went with it: then the list is asked for again."""
    return event.kind in _OF_THE_LIST


def with_contact(
    state: NodeState, contact: Contact, reason: str, at: datetime, said_name: str = ""
) -> NodeState:
    """``since`` stays where it was in the same contact before; the newest reason and name count."""
    since = state.since if contact is state.contact else at
    name = said_name[:MAX_NAME_CHARACTERS] or state.said_name
    return replace(state, contact=contact, reason=reason, since=since, said_name=name)


def _since_before(state: NodeState, device_id: str, verdict: Verdict) -> datetime | None:
    before = state.parts.get(device_id)
    return before.since if before is not None and before.verdict is verdict else None


def _part(
    device_id: str, name: str, kind: Kind | None, given: Device | Event, since: datetime | None
) -> DeviceState:
    codes = tuple(dict.fromkeys(reason.code for reason in given.reasons if reason.code))
    if len(device_id) + len(name) + sum(map(len, codes)) > MAX_PART_CHARACTERS:
        raise TooMuch(f"the id, name and codes of one device have more than {MAX_PART_CHARACTERS} characters")
    cause = next((reason.text for reason in given.reasons), "")[:MAX_CAUSE_CHARACTERS]
    return DeviceState(
        name=name,
        kind=kind,
        verdict=given.verdict,
        handling=given.handling,
        codes=codes,
        cause=cause,
        since=since,
    )


def _bounded(parts: Mapping[str, DeviceState]) -> Mapping[str, DeviceState]:
    if len(parts) > MAX_PARTS:
        raise TooMuch(f"it names more than {MAX_PARTS} devices, and no daemon has more")
    return parts


class NodeStates:
    """The present state of every node; no history. ``changed`` is set with each change, and cleared by the
    code that waits for it. ``version`` counts the changes. ``heard_at`` is when each node sent its last
    message, by its name; that alone is no change.
    """

    def __init__(self) -> None:
        self._states: dict[str, NodeState] = {}
        self._unknown: set[str] = set()
        self.heard_at: dict[str, datetime] = {}
        self.changed = asyncio.Event()
        self.version = 0

    @property
    def states(self) -> Mapping[str, NodeState]:
        """The state of each node, by its name."""
        return self._states

    @property
    def all_known(self) -> bool:
        """Whether each node has sent its devices, or is known not to answer."""
        return not self._unknown

    def list(self, endpoint: Endpoint) -> None:
        self.put(NodeState(endpoint=endpoint))

    def of(self, endpoint: Endpoint) -> NodeState:
        return self._states[endpoint.name]

    def put(self, state: NodeState) -> None:
        """The same state again is no change."""
        name = state.endpoint.name
        if self._states.get(name) is state:
            return
        self._states[name] = state
        if state.parts or state.contact in (Contact.AWAY, Contact.REFUSES):
            self._unknown.discard(name)
        else:
            self._unknown.add(name)
        self._change()

    def remove(self, endpoints: Iterable[Endpoint]) -> None:
        for endpoint in endpoints:
            del self._states[endpoint.name]
            self.heard_at.pop(endpoint.name, None)
            self._unknown.discard(endpoint.name)
        self._change()

    def _change(self) -> None:
        self.version += 1
        self.changed.set()
