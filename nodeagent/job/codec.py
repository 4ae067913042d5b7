"""Frozen dataclasses as JSON and back. Every line and file of a supervisor is read and written by this.

Each field is checked against its type; a value that does not fit is an error that names the field and what
would be right. An unknown field is passed over, because its writer may be newer, unless the reader is strict.
Lines name the type of their value under one key (``TaggedLines``); files name their format and version
(``encode_document``). It opens no file and no socket.
"""

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, Final, TypeVar, Union, get_args, get_origin, get_type_hints

VERSION: Final = 1
"""Of a file."""

T = TypeVar("T")


class CodecError(ValueError):
    """A text or a value is not what it has to be. The message names the field and what would be right."""


# ---------------------------------------------------------------------- values


def to_plain(value: Any, *, sparse: bool = False) -> Any:
    """``sparse``: without the fields that have their defaults."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [to_plain(each, sparse=sparse) for each in value]
    if is_dataclass(value):
        found = ((each, getattr(value, each.name)) for each in fields(value))
        kept = ((each.name, its) for each, its in found if not sparse or its != each.default)
        return {name: to_plain(its, sparse=sparse) for name, its in kept}
    if isinstance(value, Mapping):
        return {name: to_plain(each, sparse=sparse) for name, each in value.items()}
    return value


def from_plain(of: type[T], values: Mapping[str, Any], *, where: str = "", strict: bool = False) -> T:
    """``where`` goes before the name of a field in a message. ``strict``: no unknown field, no number beyond
    1e18. Raises ``CodecError``.
    """
    of_class: Any = of  # the type of a class is not known to be hashable
    hints = _hints(of_class)
    unknown = next((name for name in values if name not in hints), None) if strict else None
    if unknown is not None:
        raise CodecError(f"{where}{unknown}: unknown; one of {', '.join(hints)}")
    missing = next((name for name in _required(of_class) if name not in values), None)
    if missing is not None:
        raise CodecError(f"{where}{missing}: missing")
    given = {
        name: _checked(hint, values[name], f"{where}{name}", strict=strict)
        for name, hint in hints.items()
        if name in values
    }
    return of(**given)


@cache
def _hints(of: Any) -> Mapping[str, Any]:
    return get_type_hints(of)


@cache
def _required(of: Any) -> tuple[str, ...]:
    return tuple(
        each.name for each in fields(of) if each.default is MISSING and each.default_factory is MISSING
    )


def _checked(hint: Any, value: Any, where: str, *, strict: bool) -> Any:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        choices = [each for each in get_args(hint) if each is not type(None)]
        return None if value is None else _checked(choices[0], value, where, strict=strict)
    if origin is tuple:
        if not isinstance(value, list):
            raise CodecError(f"{where}: a list, not {value!r}")
        of = get_args(hint)[0]
        return tuple(_checked(of, each, f"{where}[{at}]", strict=strict) for at, each in enumerate(value))
    if origin is not None and issubclass(origin, Mapping):
        of = get_args(hint)[1]
        named = _object(value, where).items()
        return {name: _checked(of, each, f"{where}.{name}", strict=strict) for name, each in named}
    if is_dataclass(hint):
        return from_plain(hint, _object(value, where), where=f"{where}.", strict=strict)  # type: ignore[arg-type]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _enum(hint, value, where)
    return _scalar(hint, value, where, strict=strict)


def _object(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise CodecError(f"{where}: an object, not {value!r}")
    return value


def _enum(of: type[Enum], value: Any, where: str) -> Enum:
    try:
        return of(value)
    except ValueError:
        allowed = ", ".join(str(each.value) for each in of)
        raise CodecError(f"{where}: one of {allowed}, not {value!r}") from None


_SCALARS: Final[Mapping[type[Any], str]] = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "true or false",
}


def _scalar(of: type[Any], value: Any, where: str, *, strict: bool) -> Any:
    if of is float and type(value) is int:
        value = float(value)
    if type(value) is not of:
        raise CodecError(f"{where}: {_SCALARS[of]}, not {value!r}")
    if strict and of is float and not -1e18 < value < 1e18:
        raise CodecError(f"{where}: a finite number, not {value!r}")
    return value


# ---------------------------------------------------------------------- lines


def line_of(values: Mapping[str, Any]) -> str:
    """With its newline."""
    return json.dumps(values, separators=(",", ":")) + "\n"


def object_in(text: bytes | str) -> dict[str, Any]:
    """Raises ``CodecError``."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CodecError(f"not JSON: {error}") from error
    if not isinstance(values, dict):
        raise CodecError(f"an object, not {str(values)[:40]}")
    return values


class TaggedLines:
    """Lines of several types: under ``key`` each has the tag of its type."""

    def __init__(self, key: str, types: Mapping[str, type[Any]]) -> None:
        self._key = key
        self._types = types
        self._tags = {of: tag for tag, of in types.items()}

    def encode(self, value: Any, **first: Any) -> bytes:
        """With its newline. ``first`` are fields of the line itself."""
        return line_of({**first, self._key: self._tags[type(value)], **to_plain(value)}).encode()

    def tag_of(self, value: Any) -> str:
        return self._tags[type(value)]

    def decode(self, data: bytes) -> Any:
        """Raises ``CodecError``."""
        return self.value_in(object_in(data))

    def value_in(self, values: Mapping[str, Any]) -> Any:
        """Raises ``CodecError``."""
        tag = values.get(self._key, "")
        of = self._types.get(tag) if isinstance(tag, str) else None
        if of is None:
            raise CodecError(f"{self._key}: one of {', '.join(self._types)}, not {tag!r}")
        return from_plain(of, values)


def whole_number(values: Mapping[str, Any], name: str) -> int:
    """A field of a line itself. Raises ``CodecError``."""
    number: int = _scalar(int, values.get(name), name, strict=False)
    return number


# ---------------------------------------------------------------------- files


def encode_document(value: Any, form: str, **more: str) -> str:
    """The text of a file, with its newline. ``more`` comes before the fields of the value."""
    return json.dumps({"format": form, "version": VERSION, **more, **to_plain(value)}, indent=1) + "\n"


def document_values(text: str, form: str) -> Mapping[str, Any]:
    """A torn text, or one of another format, is never read as one that holds less. Raises ``CodecError``."""
    try:
        values = object_in(text)
    except CodecError as error:
        raise CodecError(f"{error}; it may be torn") from error
    if values.get("format") != form:
        raise CodecError(f'format: "{form}"; this file is of something else')
    if values.get("version") != VERSION:
        raise CodecError(
            f"version: {VERSION}, not {values.get('version')!r}; use the same nodeagent on all nodes"
        )
    return values


def document_value(of: type[T], values: Mapping[str, Any], *, added: frozenset[str] = frozenset()) -> T:
    """No field may be missing, not even one that has a default, but those that were ``added`` after the
    format was first written. Raises ``CodecError``.
    """
    of_class: Any = of
    missing = [name for name in _hints(of_class) if name not in values and name not in added]
    if missing:
        raise CodecError(f"{', '.join(missing)}: missing, it may be torn")
    return from_plain(of, values)
