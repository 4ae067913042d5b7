"""From dataclasses to messages of the API: tables made once, at import, of the fields of both.

A field goes to the one of its name. A time ``x_ns`` goes to ``x`` or ``x_at``; enums, times, lengths of time,
lists and messages within messages are known by their types. Whatever has no counterpart is named where the
table is made, or the import fails. No message and no class is named here.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from operator import attrgetter
from typing import Any, Generic, TypeVar

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from nodeagent.outlets import enums

_SECOND_NS = 1_000_000_000

V = TypeVar("V")
M = TypeVar("M", bound=Message)

Convert = Callable[[Any], Any]
Place = Callable[[Any, int], Any]
"""Converts a time, or what may hold one; the second argument is from its clock to wall time, ns."""


class MappingError(Exception):
    """A field has no counterpart, or an exception is none: the message says which, and what to do."""


def timestamp(wall_ns: int) -> Timestamp:
    seconds, nanos = divmod(wall_ns, _SECOND_NS)
    return Timestamp(seconds=seconds, nanos=nanos)


def wall_ns(stamp: Timestamp) -> int:
    return stamp.seconds * _SECOND_NS + stamp.nanos


def duration(length_ns: int) -> Duration:
    seconds, nanos = divmod(length_ns, _SECOND_NS)
    return Duration(seconds=seconds, nanos=nanos)


class Writer(Generic[V, M]):
    """Makes messages of values.

    ``computed`` are fields of the message that each call gives; ``unsent`` fields of the value that nobody is
    sent; ``renamed`` has the value's attribute by the message's field, ``converted`` a function by the
    message's field; ``parts`` are the writers of messages within this one.
    Raises ``MappingError`` where a field of either is left over.
    """

    def __init__(
        self,
        value: type[V],
        message: type[M],
        *,
        computed: Iterable[str] = (),
        unsent: Iterable[str] = (),
        renamed: Mapping[str, str] | None = None,
        converted: Mapping[str, Convert] | None = None,
        parts: "Iterable[Writer[Any, Any]]" = (),
    ) -> None:
        self.message = message
        renamed, converted = renamed or {}, converted or {}
        within = {part.message.DESCRIPTOR.full_name: part for part in parts}
        sources = _sources(value, message, {*computed}, renamed)
        _check(value, message, sources, {*computed}, {*unsent}, {*renamed, *converted})
        scalars, words, others = dict[str, str](), [], []
        for name, source in sources.items():
            field = message.DESCRIPTOR.fields_by_name[name]
            if field.enum_type is not None:
                words.append((name, attrgetter(source), enums.NUMBERS[field.enum_type.name]))
            elif field.message_type is None and not field.is_repeated and name not in converted:
                scalars[name] = source
            else:
                convert = converted.get(name)
                place = _place(field, within) if convert is None else _without_clock(convert)
                others.append((name, attrgetter(source), place))
        self._names, self._get = tuple(scalars), _getter(*scalars.values())
        self._words, self._others = tuple(words), tuple(others)

    def __call__(self, value: V, offset_ns: int = 0, **fields: object) -> M:
        """``offset_ns`` is from the clock of the value's times to wall time; ``fields`` are the computed."""
        for name, get, place in self._others:
            fields[name] = place(get(value), offset_ns)
        message = self.message(**fields)
        for name, scalar in zip(self._names, self._get(value), strict=True):
            if scalar:  # what is empty is so in a new message
                setattr(message, name, scalar)
        for name, get, numbers in self._words:
            if (word := get(value)) is not None:
                setattr(message, name, numbers[word])
        return message


def _getter(*attributes: str) -> Callable[[Any], tuple[Any, ...]]:
    """As ``attrgetter``, which gives a tuple of two or more only."""
    if len(attributes) > 1:
        return attrgetter(*attributes)
    return lambda value: tuple(getattr(value, each) for each in attributes)


def _as_it_is(given: Any, _offset_ns: int) -> Any:
    return given


def _without_clock(convert: Convert) -> Place:
    return lambda given, _offset_ns: convert(given)


def _sources(
    value: type[Any], message: type[Message], computed: set[str], renamed: Mapping[str, str]
) -> dict[str, str]:
    """The value's attribute by the message's field. Raises ``MappingError`` where nothing fills one."""
    own, sources = {field.name for field in fields(value)}, {}
    for name in message.DESCRIPTOR.fields_by_name:
        if name in computed:
            continue
        guesses = (renamed.get(name, name), f"{name}_ns", f"{name.removesuffix('_at')}_ns")
        found = [each for each in guesses if each in own or (name in renamed and hasattr(value, each))]
        if not found:
            raise MappingError(
                f"{message.DESCRIPTOR.name}.{name} of the proto: {value.__name__} has no such field;"
                " add it there, or name it in computed or renamed where its Writer is made"
            )
        sources[name] = found[0]
    return sources


def _check(
    value: type[Any],
    message: type[Message],
    sources: Mapping[str, str],
    computed: set[str],
    unsent: set[str],
    excepted: set[str],
) -> None:
    """Raises ``MappingError`` where a field of the value goes nowhere, or an exception is none."""
    own = {field.name for field in fields(value)}
    what = message.DESCRIPTOR.name
    for name in own - {*sources.values()} - unsent:
        raise MappingError(
            f"{value.__name__}.{name}: {what} of the proto has no such field; add it there,"
            " or name it in unsent where its Writer is made"
        )
    known = {*message.DESCRIPTOR.fields_by_name}
    stale = (unsent - own) | (unsent & {*sources.values()}) | ((computed | excepted) - known)
    for name in sorted(stale):
        raise MappingError(
            f"{value.__name__} to {what}: {name} is named as an exception, and is none;"
            " take it out where their Writer is made"
        )


def _place(field: Any, within: Mapping[str, Writer[Any, Any]]) -> Place:
    """For lists, maps and messages. Raises ``MappingError`` where no writer makes the messages."""
    kind = field.message_type
    if kind is None or kind.GetOptions().map_entry:
        return _as_it_is
    if kind.full_name in _PLACES:
        one = _PLACES[kind.full_name]
    elif kind.full_name in within:
        one = within[kind.full_name]
    else:
        raise MappingError(
            f"{field.full_name} of the proto: nothing makes a {kind.name}; name its Writer in parts"
        )
    if field.is_repeated:
        return lambda given, offset_ns: [one(each, offset_ns) for each in given]
    return lambda given, offset_ns: None if given is None else one(given, offset_ns)


_PLACES: Mapping[str, Place] = {
    Timestamp.DESCRIPTOR.full_name: lambda at_ns, offset_ns: timestamp(at_ns + offset_ns),
    Duration.DESCRIPTOR.full_name: lambda length_ns, _offset_ns: duration(length_ns),
}
