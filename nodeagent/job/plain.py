"""Frozen values as JSON has them, and back: every field is checked against its type.

An unknown field is passed over, for whoever wrote it may be newer. It knows no file, no line and no socket.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


class PlainError(ValueError):
    """A value is not of its type. The text says which field, and what would be right."""


def to_plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [to_plain(each) for each in value]
    if is_dataclass(value):
        return {each.name: to_plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {name: to_plain(each) for name, each in value.items()}
    return value


def from_plain(of: type[T], values: Mapping[str, Any], *, where: str = "", name: str = "") -> T:
    """``where`` goes before each field in a message, ``name`` stands for the whole. Raises ``PlainError``."""
    given = {
        field: _checked(hint, values[field], f"{where}{field}")
        for field, hint in _hints(of).items()  # type: ignore[arg-type]  # a class is hashable
        if field in values
    }
    try:
        return of(**given)
    except TypeError as error:
        raise PlainError(f"{where or name}: {error}") from error


@cache
def _hints(of: type[Any]) -> Mapping[str, Any]:
    return get_type_hints(of)


def _checked(hint: Any, value: Any, where: str) -> Any:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        choices = [each for each in get_args(hint) if each is not type(None)]
        return None if value is None else _checked(choices[0], value, where)
    if origin is tuple:
        return _tuple(get_args(hint)[0], value, where)
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(get_args(hint)[1], value, where)
    if is_dataclass(hint):
        if not isinstance(value, dict):
            raise PlainError(f"{where}: an object, not {value!r}")
        return from_plain(hint, value, where=f"{where}.")  # type: ignore[arg-type]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _enum(hint, value, where)
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        raise PlainError(f"{where}: {hint.__name__}, not {value!r}")
    return value


def _tuple(of: Any, value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise PlainError(f"{where}: a list, not {value!r}")
    return tuple(_checked(of, each, f"{where}[{place}]") for place, each in enumerate(value))


def _mapping(of: Any, value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise PlainError(f"{where}: an object, not {value!r}")
    return {name: _checked(of, each, f"{where}.{name}") for name, each in value.items()}


def _enum(of: type[Enum], value: Any, where: str) -> Enum:
    try:
        return of(value)
    except ValueError as error:
        allowed = ", ".join(str(each.value) for each in of)
        raise PlainError(f"{where}: one of {allowed}, not {value!r}") from error
