"""The state file as ctypes structures, made from ``c/fields.def``, from which C is built too.

A definition that C would take and this reader does not is an error with its line, so the two cannot differ
unnoticed. Fields can be set by name, with a check. ``take_away`` removes functions from a copy of a library,
so that it is like an older version; the library that was built is never changed.
"""

import ctypes
import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

FIELDS: Final = Path(__file__).parent / "c/shared/fields.def"
TYPES: Final[Mapping[str, type[Any]]] = {
    "int32_t": ctypes.c_int32,
    "uint32_t": ctypes.c_uint32,
    "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64,
    "double": ctypes.c_double,
    "char": ctypes.c_char,
}
PARTS: Final = ("NODE", "CHIP", "OVERRIDE", "STANDING", "FABRIC", "ALARM", "SEL", "FUNCTION", "EVENT")

_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)
_ENTRY: Final = re.compile(r"^([A-Z]+)(?:_(FIELD|ARRAY))?\(([^()]*)\)$")


class LayoutError(ValueError):
    """``fields.def`` holds a line that is none of its forms; the text names it."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The structures by part (``NODE``, ``CHIP``, …), ``state``, which holds all, and the limits by name."""

    limits: Mapping[str, int]
    parts: Mapping[str, Any]
    state: Any


def _number(text: str, limits: Mapping[str, int], line: str) -> int:
    try:
        return limits[text] if text in limits else int(text, 0)
    except ValueError:
        raise LayoutError(f"fields.def: {line}: {text} is neither a number nor a LIMIT above") from None


def _entries(text: str) -> Iterator[tuple[str, str, list[str], str]]:
    for line in _COMMENT.sub("", text).splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        entry = _ENTRY.match(line)
        if entry is None:
            raise LayoutError(f"fields.def: {line}: not one NAME(…) on a line")
        yield entry[1], entry[2] or "", [argument.strip() for argument in entry[3].split(",")], line


def read_layout(text: str) -> Layout:
    """The layout that a text in the form of ``fields.def`` describes. Raises ``LayoutError``."""
    limits: dict[str, int] = {}
    fields: dict[str, list[tuple[str, type[Any]]]] = {part: [] for part in PARTS}
    for part, form, arguments, line in _entries(text):
        if (part, form, len(arguments)) == ("LIMIT", "", 2):
            limits[arguments[0]] = _number(arguments[1], limits, line)
        elif part in fields and arguments[0] in TYPES and (form, len(arguments)) == ("FIELD", 2):
            fields[part].append((arguments[1], TYPES[arguments[0]]))
        elif part in fields and arguments[0] in TYPES and (form, len(arguments)) == ("ARRAY", 3):
            count = _number(arguments[2], limits, line)
            fields[part].append((arguments[1], TYPES[arguments[0]] * count))
        else:
            raise LayoutError(
                f"fields.def: {line}: LIMIT, or _FIELD or _ARRAY of {', '.join(PARTS)}, is right"
            )
    parts: dict[str, Any] = {
        part: type(part.title(), (ctypes.Structure,), {"_fields_": fields[part]}) for part in PARTS
    }
    whole: list[tuple[str, Any]] = [
        ("node", parts["NODE"]),
        ("chips", parts["CHIP"] * limits["CHIPS"]),
        ("standing", parts["STANDING"] * limits["CODES"] * limits["CHIPS"]),
        ("fabric", parts["FABRIC"] * limits["FABRIC_FAULTS"]),
        ("alarms", parts["ALARM"] * limits["ALARMS"]),
        ("sel", parts["SEL"] * limits["SEL_RECORDS"]),
        ("overrides", parts["OVERRIDE"] * limits["OVERRIDES"]),
        ("functions", parts["FUNCTION"] * limits["FUNCTIONS"]),
        ("events", parts["EVENT"] * limits["EVENTS"]),
    ]
    return Layout(limits, parts, type("State", (ctypes.Structure,), {"_fields_": whole}))


LAYOUT: Final = read_layout(FIELDS.read_text())
LIMITS: Final = LAYOUT.limits
"""Sizes and kinds by their name in ``fields.def``."""


_PLACED: Final = re.compile(r"(\w+)(?:\[(\d+)\])?", re.ASCII)


class FieldError(ValueError):
    """No such field, or no such value for it; the text has what would be right."""


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
    """Sets a field, or ``FIELD[PLACE]``, to a value as text. Raises ``FieldError``; nothing is set then."""
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


class NoSuchFunction(LookupError):
    """The library exports no function of that name."""


def expect_function(libraries: Iterable[Path], function: str) -> None:
    """Raises ``NoSuchFunction`` where none of them has it; ``*`` at its end: none that begins so."""
    named = b"\0" + (function.encode()[:-1] if function.endswith("*") else function.encode() + b"\0")
    if not any(named in library.read_bytes() for library in libraries):
        raise NoSuchFunction(f"{function}: no library of this node has such a function")


def take_away(library: Path, functions: Collection[str]) -> None:
    """Renames functions in the library's table of names. Raises ``NoSuchFunction``; nothing is changed then.

    What has the file mapped already keeps the old one: a new file takes its place.
    """
    content = library.read_bytes()
    for function in functions:
        named = b"\0" + function.encode() + b"\0"
        # The linker hashes each name: a name that differs from its hash is never found.
        if named not in content:
            raise NoSuchFunction(f"{library.name} has no function {function}")
        content = content.replace(named, b"\0~" + named[2:])
    fresh = library.with_name(f".{library.name}")
    fresh.write_bytes(content)
    fresh.chmod(library.stat().st_mode)
    fresh.replace(library)
