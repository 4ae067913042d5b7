"""The lines between a supervisor and the daemon: one JSON object each, at most 64 KiB, both ways.

    supervisor                              daemon
    hello     protocol, version, pid    ->
                                        <-  welcome  job, what the site has set
    begin     kind, run, what it allows ->
                                        <-  wanted   at once, and at each change
    said      number, run, what         ->
                                        <-  taken    number: it is on the disk (or cannot be)
    ask       number                    ->
                                        <-  chips    number, what is read of the job's chips, who holds them
    bye       why, status               ->

Either side ends a connection whose lines it does not understand, and says why in ``refused`` first. A
supervisor that connects anew says ``begin`` again, and every ``said`` that was not taken; what was taken is
not taken twice. Unknown keys are passed over: the other side may be newer. It reads and writes no socket.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from nodeagent.job.model import Wish

PROTOCOL: Final = 1
MAX_LINE_BYTES: Final = 65_536


class Word(str, Enum):
    """What a supervisor says of a run."""

    STARTED = "started"
    STOPPED = "stopped"
    """As it was asked to: no process of the run is left."""

    EXITED = "exited"
    """By itself: no process of the run is left."""

    SUSPECTED = "suspected"
    SUSPENDED = "suspended"
    CLEARED = "cleared"
    UNKILLABLE = "unkillable"


class LineError(ValueError):
    """A line is not one of these. The text says which field, and what would be right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    pid: int
    version: str
    protocol: int = PROTOCOL
    job: str = ""
    """In the submitter's words; whose it is follows from the peer's cgroup, never from this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    """``job`` is the daemon's name for it; ``defaults`` and ``limits`` are the site's, by policy key."""

    job: str
    version: str
    protocol: int = PROTOCOL
    defaults: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """``run`` is the next to be run, or the one that runs (``is_running``)."""

    kind: str
    run: int
    is_running: bool
    in_place: bool
    yields: bool
    reschedules: bool
    """It may be run elsewhere for a fault."""

    strategy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    wish: Wish
    run: int
    why: str = ""
    chip: str = ""
    code: str = ""
    isolated: bool = False
    handling: str = "NONE"
    by_operator: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    number: int
    run: int
    what: Word
    why: str = ""
    status: int | None = None
    evidence: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """As ``sample.ChipSample``; a reading that is not there is None."""

    name: str
    known: bool
    util: float | None = None
    mem_util: float | None = None
    power_w: float | None = None
    rx_bytes: int | None = None
    tx_bytes: int | None = None
    profiling: bool = False
    handling: str = "NONE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chips:
    """``holders`` are the pids, on the host, of the processes on them; None where they are not known."""

    number: int
    chips: tuple[Chip, ...] = ()
    holders: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bye:
    """The supervisor ends with this status, and reports nothing after it."""

    number: int
    status: int
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    why: str


FromSupervisor = Hello | Begin | Said | Ask | Bye
FromDaemon = Welcome | Want | Taken | Chips | Refused
Line = FromSupervisor | FromDaemon

_TAGS: Final[Mapping[str, type[Any]]] = {
    "hello": Hello,
    "welcome": Welcome,
    "begin": Begin,
    "wanted": Want,
    "said": Said,
    "taken": Taken,
    "ask": Ask,
    "chips": Chips,
    "bye": Bye,
    "refused": Refused,
}
_BY_TYPE: Final = {of: tag for tag, of in _TAGS.items()}
_HINTS: Final = {of: get_type_hints(of) for of in (*_TAGS.values(), Chip)}


def encode(line: Line) -> bytes:
    """With its newline."""
    values = {"line": _BY_TYPE[type(line)], **_plain(line)}
    return json.dumps(values, separators=(",", ":")).encode() + b"\n"


def decode(data: bytes) -> Line:
    """Raises ``LineError``."""
    try:
        values = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise LineError(f"not JSON: {error}") from error
    if not isinstance(values, dict):
        raise LineError("not an object")
    of = _TAGS.get(values.get("line", ""))
    if of is None:
        raise LineError(f"line: one of {', '.join(_TAGS)}, not {values.get('line')!r}")
    found: Line = _build(of, values, "")
    return found


def _plain(value: Any) -> dict[str, Any]:
    """Of a dataclass: what is not as by default."""
    return {each.name: _value(getattr(value, each.name)) for each in fields(value)}


def _value(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [_value(each) for each in value]
    if type(value) in _HINTS:
        return _plain(value)
    return dict(value) if isinstance(value, Mapping) else value


def _build(of: type[Any], values: Mapping[str, Any], where: str) -> Any:
    hints = _HINTS[of]
    given = {
        name: _checked(hint, values[name], f"{where}{name}") for name, hint in hints.items() if name in values
    }
    try:
        return of(**given)
    except TypeError as error:
        raise LineError(f"{where or _BY_TYPE.get(of, '')}: {error}") from error


def _checked(hint: Any, value: Any, where: str) -> Any:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        choices = [each for each in get_args(hint) if each is not type(None)]
        return None if value is None else _checked(choices[0], value, where)
    if origin is tuple:
        return _tuple(get_args(hint)[0], value, where)
    if origin is not None and issubclass(origin, Mapping):
        return _texts(value, where)
    if hint in _HINTS:
        if not isinstance(value, dict):
            raise LineError(f"{where}: an object, not {value!r}")
        return _build(hint, value, f"{where}.")
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _enum(hint, value, where)
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        raise LineError(f"{where}: {hint.__name__}, not {value!r}")
    return value


def _tuple(of: Any, value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise LineError(f"{where}: a list, not {value!r}")
    return tuple(_checked(of, each, f"{where}[{place}]") for place, each in enumerate(value))


def _texts(value: Any, where: str) -> Mapping[str, str]:
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise LineError(f"{where}: an object of texts, not {value!r}")
    return value


def _enum(of: type[Enum], value: Any, where: str) -> Enum:
    try:
        return of(value)
    except ValueError as error:
        raise LineError(
            f"{where}: one of {', '.join(str(each.value) for each in of)}, not {value!r}"
        ) from error
