"""From dataclasses to messages of the API: functions made once, at import, of the fields of both.

A field goes to the one of its name. A time ``x_ns`` goes to ``x`` or ``x_at``; enums, times, lengths of time,
lists and messages within messages are known by their types. Whatever has no counterpart is named where the
function is made, or the import fails. No message and no class is named here.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from typing import Any, Final, Protocol, TypeVar, get_type_hints

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from nodeagent.messages import enums

_SECOND_NS = 1_000_000_000

V = TypeVar("V")
M = TypeVar("M", bound=Message)
V_contra = TypeVar("V_contra", contravariant=True)
M_co = TypeVar("M_co", bound=Message, covariant=True)

Convert = Callable[[Any], Any]


class MappingError(Exception):
    """A field has no counterpart, or an exception is not needed: the message names it and what to do."""


def timestamp(wall_ns: int) -> Timestamp:
    seconds, nanos = divmod(wall_ns, _SECOND_NS)
    return Timestamp(seconds=seconds, nanos=nanos)


def wall_ns(stamp: Timestamp) -> int:
    return stamp.seconds * _SECOND_NS + stamp.nanos


def duration(length_ns: int) -> Duration:
    seconds, nanos = divmod(length_ns, _SECOND_NS)
    return Duration(seconds=seconds, nanos=nanos)


class Write(Protocol[V_contra, M_co]):
    """Makes a message of a value."""

    def __call__(self, value: V_contra, offset_ns: int = 0, /, **computed: object) -> M_co:
        """``offset_ns`` is from the clock of the value's times to wall time."""


def writer(
    value: type[V],
    message: type[M],
    *,
    computed: Collection[str] = (),
    unsent: Collection[str] = (),
    renamed: Mapping[str, str] | None = None,
    converted: Mapping[str, Convert] | None = None,
    nested: Collection[str] = (),
    parts: Mapping[type[Message], Write[Any, Message]] | None = None,
) -> Write[V, M]:
    """What makes these messages of those values.

    ``computed`` are fields of the message that each call gives; ``unsent`` fields of the value that are not
    sent; ``renamed`` has the value's attribute by the message's field, ``converted`` a function by the
    message's field; ``parts`` what makes the messages within this one. ``nested`` are fields of the value
    whose own fields are taken as the value's; of these, what the message has no field for is not sent.
    Raises ``MappingError`` where a field of either is left over.

    It is made as ``dataclasses`` makes ``__init__``, of the names of fields: a loop over a table took half as
    long again for each event.
    """
    renamed, converted = renamed or {}, converted or {}
    sources = _sources(value, message, {*computed}, renamed, nested)
    _check(value, message, sources, {*computed}, {*unsent, *nested}, {*renamed, *converted})
    within = {kind.DESCRIPTOR.full_name: write for kind, write in (parts or {}).items()} | dict(_WELL_KNOWN)
    arguments, names = [f"{name}={name}" for name in computed], dict[str, Any](_message=message)
    for name, source in sources.items():
        field = message.DESCRIPTOR.fields_by_name[name]
        if name in converted:
            form, names[f"_of_{name}"] = _CONVERTED, converted[name]
        else:
            form, names[f"_of_{name}"] = _form(field, within)
        arguments.append(f"{name}=" + form.format(of=f"_of_{name}", value=f"_value.{source}"))
    given = "".join(f", {name}" for name in ("*", *computed) if computed)
    write: Write[V, M] = eval(f"lambda _value, _offset_ns=0{given}: _message({', '.join(arguments)})", names)
    return write


_PLAIN: Final = "{value}"
_WORD: Final = "{of}[{value}]"
_CONVERTED: Final = "{of}({value})"
_PART: Final = "None if {value} is None else {of}({value}, _offset_ns)"
_LIST: Final = "[{of}(each, _offset_ns) for each in {value}]"


def _form(field: Any, within: Mapping[str, Any]) -> tuple[str, Any]:
    """How a field is made, and with what. Raises ``MappingError`` where nothing makes its message."""
    kind = field.message_type
    if field.enum_type is not None:
        return _WORD, {None: 0, **enums.NUMBERS[field.enum_type.name]}
    if kind is None or kind.GetOptions().map_entry:
        return _PLAIN, None
    if kind.full_name not in within:
        raise MappingError(f"{field.full_name} of the proto: nothing makes a {kind.name}; name it in parts")
    return (_LIST if field.is_repeated else _PART), within[kind.full_name]


def _sources(
    value: type[Any],
    message: type[Message],
    computed: set[str],
    renamed: Mapping[str, str],
    nested: Collection[str],
) -> dict[str, str]:
    """The value's attribute by the message's field. Raises ``MappingError`` where nothing fills one."""
    hints = get_type_hints(value) if nested else {}
    kinds, sources = {"": value, **{f"{each}.": hints[each] for each in nested}}, dict[str, str]()
    for name in message.DESCRIPTOR.fields_by_name:
        if name in computed:
            continue
        guesses = (renamed.get(name, name), f"{name}_ns", f"{name.removesuffix('_at')}_ns")
        found = [
            path + each
            for each in guesses
            for path, kind in kinds.items()
            if each in _names(kind) or (name in renamed and hasattr(kind, each))
        ]
        if not found:
            raise MappingError(
                f"{message.DESCRIPTOR.name}.{name} of the proto: {value.__name__} has no such field;"
                " add it there, or name it in computed or renamed where its writer is made"
            )
        sources[name] = found[0]
    return sources


def _names(value: type[Any]) -> set[str]:
    return {field.name for field in fields(value)}


def _check(
    value: type[Any],
    message: type[Message],
    sources: Mapping[str, str],
    computed: set[str],
    unsent: set[str],
    excepted: set[str],
) -> None:
    """Raises ``MappingError`` where a field of the value goes nowhere, or an exception is none."""
    own = _names(value)
    what = message.DESCRIPTOR.name
    for name in own - {*sources.values()} - unsent:
        raise MappingError(
            f"{value.__name__}.{name}: {what} of the proto has no such field; add it there,"
            " or name it in unsent where its writer is made"
        )
    known = {*message.DESCRIPTOR.fields_by_name}
    stale = (unsent - own) | (unsent & {*sources.values()}) | ((computed | excepted) - known)
    for name in sorted(stale):
        raise MappingError(
            f"{value.__name__} to {what}: {name} is named as an exception, and is none;"
            " take it out where their writer is made"
        )


_WELL_KNOWN: Final[Mapping[str, Any]] = {
    Timestamp.DESCRIPTOR.full_name: lambda at_ns, offset_ns: timestamp(at_ns + offset_ns),
    Duration.DESCRIPTOR.full_name: lambda length_ns, _offset_ns: duration(length_ns),
}
