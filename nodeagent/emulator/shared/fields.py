"""Setting one field of the state by its name, as from a command line: checked, or an error that helps."""

import ctypes
import difflib
import re
from typing import Any, Final

_PLACED: Final = re.compile(r"(\w+)(?:\[(\d+)\])?", re.ASCII)


class FieldError(ValueError):
    """No such field, or no such value for it; the text says what would be right."""


def field_names(structure: Any) -> list[str]:
    """The fields of a structure of the state."""
    return [name for name, *_ in type(structure)._fields_]


def set_field(structure: Any, field: str, value: Any, place: int | None = None) -> None:
    """Sets a field, of an array one place. Raises ``FieldError``; nothing is set then."""
    kinds: dict[str, Any] = {name: kind for name, kind, *_ in type(structure)._fields_}
    if field not in kinds:
        near = difflib.get_close_matches(field, kinds, n=3) or sorted(kinds)
        raise FieldError(f"{field}: no such field; there is {', '.join(near)}")
    kind = kinds[field]
    if issubclass(kind, ctypes.Array) and kind._type_ is not ctypes.c_char:
        if place is None or not 0 <= place < kind._length_:
            raise FieldError(f"{field}: a place from 0 to {kind._length_ - 1} is needed, not {place}")
        getattr(structure, field)[place] = _checked(field, kind._type_, value)
    elif place is not None:
        raise FieldError(f"{field}: it is one value, without places")
    else:
        setattr(structure, field, _checked(field, kind, value))


def set_text(structure: Any, field: str, text: str) -> None:
    """Sets a field, or ``FIELD[PLACE]``, to what a text says. Raises ``FieldError``; nothing is set then."""
    named = _PLACED.fullmatch(field)
    if named is None:
        raise FieldError(f"{field}: FIELD, or FIELD[PLACE], is right")
    name, place = named[1], int(named[2]) if named[2] else None
    kind = dict(type(structure)._fields_).get(name)
    if kind is not None and issubclass(kind, ctypes.Array):
        kind = kind if kind._type_ is ctypes.c_char else kind._type_
    value: float | str
    try:
        value = float(text) if kind is ctypes.c_double else _whole(text)
    except ValueError:
        value = text
    texts = kind is not None and issubclass(kind, ctypes.Array)
    set_field(structure, name, text if texts else value, place)


def _whole(text: str) -> int:
    return int(text, 0)


def _checked(field: str, kind: Any, value: Any) -> Any:
    if issubclass(kind, ctypes.Array):
        text = value.encode() if isinstance(value, str) else value
        if not isinstance(text, bytes) or len(text) >= kind._length_:
            raise FieldError(f"{field}: a text of at most {kind._length_ - 1} bytes is right, not {value!r}")
        return text
    if kind is ctypes.c_double:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise FieldError(f"{field}: a number is right, not {value!r}")
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int) or kind(value).value != value:
        raise FieldError(f"{field}: a whole number of {8 * ctypes.sizeof(kind)} bits is right, not {value!r}")
    return value
