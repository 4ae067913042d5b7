"""A recorded series as JSON lines: a header, then one line for each sample with the beats since the last.

    {"name": "...", "T_min": 30, "period_s": 10, "kind": "training"}
    {"t_s": 10, "ranks": [{"pid": 7, "ppid": 1, ...}], "chips": [{"name": "npu0", ...}], "beats": [...]}

``ranks`` holds all processes of the tree. What a live run keeps is the same. It opens no file, and a key that
it does not know is an error: a series that was read in part would be judged wrongly.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from typing import Any, Final, TypeVar, get_args, get_type_hints

from nodeagent.job.sample import Beat, ChipSample, ProcessSample, Sample

T = TypeVar("T")


class SeriesError(ValueError):
    """A series cannot be read. The text names file, line and field, and says what would be right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """``T_min``: the hang time in minutes."""

    name: str
    T_min: float
    period_s: float = 10.0
    kind: str = "training"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    sample: Sample
    beats: tuple[Beat, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    header: Header
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A row as it stands in the file."""

    t_s: float
    ranks: tuple[ProcessSample, ...] = ()
    chips: tuple[ChipSample, ...] = ()
    beats: tuple[Beat, ...] = ()


_HINTS: Final[Mapping[type[Any], Mapping[str, Any]]] = {
    of: get_type_hints(of) for of in (Header, _Line, ProcessSample, ChipSample, Beat)
}


def header_line(header: Header) -> str:
    """With its newline, as ``row_line``."""
    return _line(_plain(header))


def row_line(row: Row) -> str:
    sample = row.sample
    return _line(_plain(_Line(t_s=sample.t_s, ranks=sample.processes, chips=sample.chips, beats=row.beats)))


def read(lines: Iterable[str], file: str) -> Series:
    """``file`` is its name for messages. Raises ``SeriesError``."""
    header: Header | None = None
    rows = list[Row]()
    for number, text in enumerate(lines, 1):
        where = f"{file}: line {number}"
        if not text.strip():
            continue
        if header is None:
            header = _build(Header, _object(text, where), where)
            continue
        line = _build(_Line, _object(text, where), where)
        if rows and line.t_s <= rows[-1].sample.t_s:
            raise SeriesError(f"{where}: t_s: greater than {rows[-1].sample.t_s:g}, not {line.t_s:g}")
        rows.append(
            Row(sample=Sample(t_s=line.t_s, processes=line.ranks, chips=line.chips), beats=line.beats)
        )
    if header is None:
        raise SeriesError(f"{file}: empty; the first line is the header with name, T_min, period_s and kind")
    return Series(header=header, rows=tuple(rows))


def _line(values: Mapping[str, Any]) -> str:
    return json.dumps(values, separators=(",", ":")) + "\n"


def _plain(value: Any) -> dict[str, Any]:
    """What is not as by default; what has no default always."""
    return {
        each.name: _form(found)
        for each in fields(value)
        if (found := getattr(value, each.name)) != each.default
    }


def _form(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [_form(each) for each in value]
    return _plain(value) if type(value) in _HINTS else value


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SeriesError(f"{where}: not JSON: {error}") from error
    if not isinstance(values, dict):
        raise SeriesError(f"{where}: an object, not {text.strip()[:40]}")
    return values


def _build(of: type[T], values: Mapping[str, Any], where: str) -> T:
    hints = _HINTS[of]
    for name in values:
        if name not in hints:
            raise SeriesError(f"{where}: {name}: unknown; one of {', '.join(hints)}")
    for each in fields(of):  # type: ignore[arg-type]  # each of _HINTS is a dataclass
        if each.default is MISSING and each.name not in values:
            raise SeriesError(f"{where}: {each.name}: missing")
    return of(**{name: _checked(hints[name], value, f"{where}: {name}") for name, value in values.items()})


def _checked(hint: Any, value: Any, where: str) -> Any:
    choices = [each for each in get_args(hint) if each not in (type(None), Ellipsis)]
    if getattr(hint, "__origin__", None) is tuple:
        if not isinstance(value, list):
            raise SeriesError(f"{where}: a list, not {value!r}")
        return tuple(_checked(choices[0], each, f"{where}[{index}]") for index, each in enumerate(value))
    if choices:
        return None if value is None else _checked(choices[0], value, where)
    if hint in _HINTS:
        if not isinstance(value, dict):
            raise SeriesError(f"{where}: an object, not {value!r}")
        return _build(hint, value, where)
    if issubclass(hint, Enum):
        try:
            return hint(value)
        except ValueError:
            right = ", ".join(str(each.value) for each in hint)
            raise SeriesError(f"{where}: one of {right}, not {value!r}") from None
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        raise SeriesError(f"{where}: {_WORDS[hint]}, not {value!r}")
    if hint is float and not -1e18 < value < 1e18:
        raise SeriesError(f"{where}: a finite number, not {value!r}")
    return value


_WORDS: Final[Mapping[type[Any], str]] = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "true or false",
}
