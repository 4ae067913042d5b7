"""Which events a subscriber sees. An event passes if the state before *or* after it matches.

So a subscriber to a minimum level is notified when a device leaves that level. A filter belongs to one
stream, since it remembers the level each device had.
"""

from collections.abc import Iterable

from nodeagent.api import messages
from nodeagent.api.access.limits import MAX_FILTER_CODES, MAX_FILTER_DEVICES, MAX_NAME_LENGTH
from nodeagent.api.refusal import Refusal, Status
from nodeagent.core.catalog.codes import canonical, covers
from nodeagent.core.model import EventKind, Level
from nodeagent.messages import enums
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.messages.pb import types_pb2
from nodeagent.store.records import Publication, StoredEvent

_NEVER_LOWERS = frozenset(
    {
        EventKind.RAISED,
        EventKind.PROMOTED,
        EventKind.NOTICE,
        EventKind.ISOLATED,
        EventKind.STARTED,
        EventKind.ACTION_PROPOSED,
        EventKind.ACTION_STARTED,
        EventKind.SOURCE_LOST,
        EventKind.QUIESCED,
        EventKind.TABLES_REJECTED,
        EventKind.JOB_BEGUN,
        EventKind.JOB_ASKED,
        EventKind.JOB_STOPPED,
        EventKind.JOB_RERUN,
        EventKind.JOB_SUSPECTED,
        EventKind.JOB_SUSPENDED,
        EventKind.JOB_ENDED,
        EventKind.JOB_SLOW,
    }
)


def level_of(number: types_pb2.Level, field: str) -> Level | None:
    """The level a request names; None where it names none. Refuses numbers that are no level."""
    if number == types_pb2.LEVEL_UNSPECIFIED:
        return None
    level = enums.LEVEL_OF.get(number)
    if level is None:
        raise Refusal(Status.INVALID_ARGUMENT, f"{field}: {number} is not a Level of nodeagent.v1")
    return level


def device_names(names: Iterable[str], field: str) -> tuple[str, ...]:
    """Names or ids of devices as a request gives them. Refuses too many and too long ones."""
    return _words(names, MAX_FILTER_DEVICES, "name", field)


class Filter:
    """One stream's filter. Feed it every event in order, also those it holds back."""

    def __init__(self, message: pb.EventFilter, field: str = "filter") -> None:
        self.devices = device_names(message.devices, f"{field}.devices")
        self._devices = frozenset(self.devices)
        self._kinds = frozenset(_kind(number, f"{field}.kinds") for number in message.kinds)
        self._codes = tuple(map(canonical, _words(message.codes, MAX_FILTER_CODES, "code", f"{field}.codes")))
        self._minimum = level_of(message.minimum_level, f"{field}.minimum_level")
        self._levels: dict[str, Level] = {}
        self._knows_all = False

    def learn(self, publication: Publication) -> None:
        """The state before the next event is this one. Without it, the first event of a device
        passes unless its kind says that it lowered nothing."""
        self._levels = {device.id: device.level for device in publication.view.devices}
        self._knows_all = True

    def forget(self) -> None:
        """The next event does not follow the last one."""
        self._levels.clear()
        self._knows_all = False

    def passes(self, stored: StoredEvent) -> bool:
        event = stored.event
        reached = self._minimum is None or self._reaches(stored, self._minimum)
        return (
            reached
            and (not self._kinds or event.kind in self._kinds)
            and (not self._devices or event.device in self._devices or event.device_id in self._devices)
            and (not self._codes or self._has_code(canonical(event.code)))
        )

    def _has_code(self, code: str) -> bool:
        return any(covers(each, code) for each in self._codes)

    def _reaches(self, stored: StoredEvent, minimum: Level) -> bool:
        event = stored.event
        before = self._levels.get(event.device_id, Level.NOT_HANDLE if self._knows_all else None)
        self._levels[event.device_id] = event.level
        if before is None and event.kind not in _NEVER_LOWERS:
            return True
        levels = (before, event.level, event.condition_level)
        return any(messages.at_least(level, minimum) for level in levels if level is not None)


def _words(texts: Iterable[str], most: int, what: str, field: str) -> tuple[str, ...]:
    found = tuple(texts)
    if len(found) > most:
        raise Refusal(Status.INVALID_ARGUMENT, f"{field}: {len(found)} {what}s; at most {most}")
    for text in found:
        if not 0 < len(text) <= MAX_NAME_LENGTH:
            raise Refusal(
                Status.INVALID_ARGUMENT,
                f"{field}: a {what} has 1 to {MAX_NAME_LENGTH} characters, not {len(text)}",
            )
    return found


def _kind(number: types_pb2.EventKind, field: str) -> EventKind:
    kind = enums.EVENT_KIND_OF.get(number)
    if kind is None:
        raise Refusal(Status.INVALID_ARGUMENT, f"{field}: {number} is not an EventKind of nodeagent.v1")
    return kind
