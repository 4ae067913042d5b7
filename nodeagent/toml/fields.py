"""Reads a TOML table into a msgspec struct field by field, so that every wrong key is reported.

The type of a field holds what is right: ``Annotated[int, Meta(ge=1, le=100, description="a whole number from
1 to 100")]``. A parser under ``extra={"reads": ...}`` first turns text into the number.
"""

import difflib
import enum
import functools
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from nodeagent.toml.lines import KeyPath
from nodeagent.toml.values import parse_duration_ns

Report = Callable[[KeyPath, str], None]
"""Gets the path of the key and the reason."""

Form = TypeVar("Form", bound=msgspec.Struct)

_PLAIN_TYPES: Mapping[object, str] = {
    str: "text in quotes",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
}


def read_form(form: type[Form], table: object, path: KeyPath, report: Report) -> Form | None:
    """The table as a ``form``, or None after every wrong, unknown and missing key was reported."""
    if not isinstance(table, Mapping):
        report(path, f"{shown(table)} is given where a table is needed")
        return None
    if (read := _read_at_once(form, table)) is not None:
        return read
    values = _read_values(form, table, path, report, is_whole=True)
    return None if values is None else form(**values)


def missing_keys(form: type[msgspec.Struct], table: Iterable[str]) -> tuple[str, ...]:
    """The keys that the form needs, and the table does not have."""
    return tuple(key for key, field in _fields(form).items() if field.required and key not in table)


def requirements(form: type[msgspec.Struct]) -> dict[str, str]:
    """What each key of the form must be, as a text."""
    return {key: _requirement(field.type) for key, field in _fields(form).items()}


def read_given(
    form: type[msgspec.Struct], table: Mapping[str, Any], path: KeyPath, report: Report
) -> dict[str, Any] | None:
    """The keys of a ``form`` in the table, by the names of its fields; any key may be missing.

    None after every wrong and unknown key was reported.
    """
    return _read_values(form, table, path, report, is_whole=False)


def _read_values(
    form: type[msgspec.Struct], table: Mapping[str, Any], path: KeyPath, report: Report, *, is_whole: bool
) -> dict[str, Any] | None:
    fields = _fields(form)
    sound = refuse_unknown_keys(table, fields, path, report)
    values: dict[str, Any] = {}
    for key, field in fields.items():
        if key not in table:
            if is_whole and field.required:
                report((*path, key), f"missing; it must be {_requirement(field.type)}")
                sound = False
            continue
        try:
            values[field.name] = _convert(table[key], field.type)
        except ValueError as error:
            report((*path, key), f"{shown(table[key])}: {error}")
            sound = False
    return values if sound else None


def _read_at_once(form: type[Form], table: Mapping[str, Any]) -> Form | None:
    """A sound table, ten times as fast; None where something is wrong, of which this way shows only one."""
    if not _is_plain(form) or not table.keys() <= _fields(form).keys():
        return None
    try:
        return msgspec.convert(table, form)
    except msgspec.ValidationError:
        return None


def refuse_unknown_keys(table: Iterable[str], known: Iterable[str], path: KeyPath, report: Report) -> bool:
    """Reports every key that is not known, with the nearest known one; whether there was none."""
    known, sound = tuple(known), True
    for key in table:
        if key not in known:
            report((*path, key), f"unknown key; {nearest(key, known)}")
            sound = False
    return sound


def nearest(text: str, known: Iterable[str]) -> str:
    """``the nearest known is "level"``, or else all that are known."""
    known = tuple(known)
    if (close := _close(text, known)) is not None:
        return f'the nearest known is "{close}"'
    return f"known here: {', '.join(known)}"


def reads_duration(annotation: Any) -> bool:
    """Whether the field is written as a duration such as ``"10m"`` and held in nanoseconds."""
    meta = _meta(annotation)
    return meta is not None and meta.extra is not None and meta.extra.get("reads") is parse_duration_ns


def shown(value: object) -> str:
    """The value as it would be written in the file, cut short."""
    match value:
        case bool():
            text = "true" if value else "false"
        case str():
            text = f'"{_escaped(value)}"'
        case Mapping():
            text = "{" + ", ".join(f" {key} = {shown(item)}" for key, item in value.items()) + " }"
        case _:
            text = str(value)
    return text if len(text) <= 80 else text[:76] + "..."


def _escaped(text: str) -> str:
    """What cannot be seen is written as in TOML."""
    return "".join(
        c if c.isprintable() else f"\\U{ord(c):08x}" if ord(c) > 0xFFFF else f"\\u{ord(c):04x}" for c in text
    )


@functools.cache
def _fields(form: type[msgspec.Struct]) -> Mapping[str, msgspec.structs.FieldInfo]:
    return {field.encode_name: field for field in msgspec.structs.fields(form)}


@functools.cache
def _is_plain(form: type[msgspec.Struct]) -> bool:
    """Whether no field needs a parser."""
    metas = (_meta(field.type) for field in _fields(form).values())
    return not any(meta is not None and meta.extra is not None for meta in metas)


def _convert(value: object, annotation: Any) -> Any:
    meta = _meta(annotation)
    if meta is not None and meta.extra is not None and (reads := meta.extra.get("reads")) is not None:
        value = reads(value)
    try:
        return msgspec.convert(value, annotation)
    except msgspec.ValidationError:
        reason = f"must be {_requirement(annotation)}"
        if isinstance(value, str) and (close := _close(value, _choices(annotation))) is not None:
            reason += f'; the nearest is "{close}"'
        raise ValueError(reason) from None


def _close(text: str, known: Iterable[str]) -> str | None:
    by_lower = {choice.lower(): choice for choice in known}
    matches = difflib.get_close_matches(text.lower(), by_lower, n=1)
    return by_lower[matches[0]] if matches else None


def _requirement(annotation: Any) -> str:
    meta = _meta(annotation)
    if meta is not None and meta.description:
        return meta.description
    if choices := _choices(annotation):
        return f"one of {', '.join(choices)}"
    return _PLAIN_TYPES.get(annotation, "a value of another type")


def _meta(annotation: Any) -> msgspec.Meta | None:
    if typing.get_origin(annotation) is Annotated:
        for item in annotation.__metadata__:
            if isinstance(item, msgspec.Meta):
                return item
    for argument in typing.get_args(annotation):
        if (meta := _meta(argument)) is not None:
            return meta
    return None


def _choices(annotation: Any) -> tuple[str, ...]:
    if isinstance(annotation, type) and issubclass(annotation, enum.StrEnum):
        return tuple(member.value for member in annotation)
    if typing.get_origin(annotation) is Literal:
        return tuple(str(argument) for argument in typing.get_args(annotation))
    for argument in typing.get_args(annotation):
        if choices := _choices(argument):
            return choices
    return ()
