"""From the messages that are received to the values that the client hands out.

The tables are made at import, of the fields of both, by their names and types; a field that only one side has
stops it. Numbers that a newer daemon may send and this library does not know become the careful choice: an
unknown verdict is ``UNKNOWN``, an unknown level or kind of device is None, an unknown event a notice.
"""

from collections.abc import Callable, Iterable
from dataclasses import fields
from datetime import UTC, datetime
from enum import StrEnum
from types import NoneType
from typing import Any, Final, Generic, TypeVar, get_args, get_type_hints

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from nodeagent.client import values
from nodeagent.core.model import EventKind, Handling, Verdict
from nodeagent.messages import enums
from nodeagent.messages.mapping import MappingError
from nodeagent.messages.pb import fault_service_pb2, types_pb2

V = TypeVar("V")
Read = Callable[[Any], Any]
"""From a field's value in a message to that in a value of ours."""

_CAREFUL: Final[dict[type[StrEnum], StrEnum]] = {
    EventKind: EventKind.NOTICE,
    Handling: Handling.NONE,
    Verdict: Verdict.UNKNOWN,
}


def _moment(stamp: Timestamp) -> datetime:
    """Aware, UTC, to the microsecond."""
    return datetime.fromtimestamp(stamp.seconds, UTC).replace(microsecond=stamp.nanos // 1000)


class Reader(Generic[V]):
    """Makes values of messages.

    ``computed`` are fields of the value that each call gives, ``unread`` fields of the message that it lacks;
    ``parts`` are the readers of messages within this one.
    Raises ``MappingError`` where a field of either is left over.
    """

    def __init__(
        self,
        message: type[Message],
        value: type[V],
        *,
        computed: Iterable[str] = (),
        unread: Iterable[str] = (),
        parts: "Iterable[Reader[Any]]" = (),
    ) -> None:
        self.value = value
        hints = get_type_hints(value)
        own = {field.name for field in fields(value)}  # type: ignore[arg-type]  # each is a dataclass
        sent = message.DESCRIPTOR.fields_by_name
        for name in own ^ ({*sent, *computed} - {*unread}):
            raise MappingError(
                f"{value.__name__}.{name}: only one of the client's class and the proto's message has it;"
                " add it to the other, or name it in computed or unread where its Reader is made"
            )
        within = {part.value: part for part in parts}
        reads = [(name, _read(sent[name], hints[name], within)) for name in sorted(own - {*computed})]
        self._plain = [name for name, (read, _) in reads if read is None]
        self._read = [(name, read) for name, (read, optional) in reads if read is not None and not optional]
        self._optional = [(name, read) for name, (read, optional) in reads if read is not None and optional]

    def __call__(self, message: Any, **given: object) -> V:
        for name in self._plain:
            given[name] = getattr(message, name)
        for name, read in self._read:
            given[name] = read(getattr(message, name))
        for name, read in self._optional:
            given[name] = read(getattr(message, name)) if message.HasField(name) else None
        return self.value(**given)


def _read(field: Any, hint: Any, within: dict[Any, Reader[Any]]) -> tuple[Read | None, bool]:
    """How a field is read, None where it is taken as it is; and whether it may not be there."""
    kinds = get_args(hint) or (hint,)
    optional = NoneType in kinds
    if field.enum_type is not None:
        if not optional and hint not in (str, *_CAREFUL):
            raise MappingError(
                f"{field.full_name} of the proto: an unknown number needs a careful choice, or None"
            )
        return _word(enums.WORDS[field.enum_type.name], hint), False
    if field.message_type is None:
        if optional and field.has_presence:
            return kinds[0], True
        return (tuple if field.is_repeated else None), False
    if field.message_type.GetOptions().map_entry:
        return dict, False
    if field.message_type.full_name == types_pb2.Holders.DESCRIPTOR.full_name:
        return lambda holders: tuple(map(within[values.Holder], holders.holders)), optional
    one = _moment if datetime in kinds else next((within[kind] for kind in kinds if kind in within), None)
    if one is None:
        raise MappingError(f"{field.full_name} of the proto: nothing reads it; name its Reader in parts")
    return (lambda many: tuple(map(one, many))) if field.is_repeated else one, optional


def _word(words: Any, hint: Any) -> Read:
    """An unknown number becomes the careful choice: "" where any text is taken, None where that is."""
    otherwise = "" if hint is str else _CAREFUL.get(hint)
    return lambda number: words.get(number, otherwise)


def position(store_id: types_pb2.StoreId, seq: int) -> values.Position:
    return values.Position(uuid=store_id.uuid, epoch=store_id.epoch, seq=seq)


reason = Reader(types_pb2.Reason, values.Reason)
_holder = Reader(types_pb2.Holder, values.Holder)
_claim = Reader(types_pb2.JobClaim, values.JobClaim)
device = Reader(types_pb2.Device, values.Device, parts=[reason, _holder, _claim])
condition = Reader(types_pb2.Condition, values.Condition)
promotion = Reader(types_pb2.Promotion, values.Promotion)
hold = Reader(types_pb2.Hold, values.Hold)
source = Reader(types_pb2.Source, values.Source)
reset = Reader(types_pb2.Reset, values.Reset)
consumer = Reader(fault_service_pb2.Consumer, values.Consumer)
_policy = Reader(types_pb2.JobPolicy, values.JobPolicy)
job = Reader(types_pb2.Job, values.Job, parts=[_policy])
_note = Reader(types_pb2.JobNote, values.JobNote)
_event = Reader(types_pb2.Event, values.Event, computed=["position"], unread=["seq"], parts=[reason, _note])
_snapshot = Reader(
    fault_service_pb2.Snapshot,
    values.Snapshot,
    computed=["position", "durable"],
    unread=["seq"],
    parts=[device, condition, promotion, hold, source, reset, job],
)


def event(message: types_pb2.Event, store_id: types_pb2.StoreId) -> values.Event:
    return _event(message, position=position(store_id, message.seq))


def snapshot(response: fault_service_pb2.WatchResponse) -> values.Snapshot:
    message = response.snapshot
    at = position(response.store_id, message.seq)
    return _snapshot(message, position=at, durable=response.durable)
