"""The state file as ctypes structures, made from ``c/fields.def``, which C is built from too.

It lays out and names; it gives no field a value. A list that C would take and this reader does not is an
error that names the line, so that the two can never differ silently.
"""

import ctypes
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

FIELDS: Final = Path(__file__).parents[1] / "c/shared/fields.def"
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
