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
from dataclasses import dataclass, field
from typing import Any, Final

from nodeagent.job.model import Wish, Word
from nodeagent.job.plain import PlainError, from_plain, to_plain

PROTOCOL: Final = 1
MAX_LINE_BYTES: Final = 65_536


class LineError(ValueError):
    """A line is not one of these. The text says which field, and what would be right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    pid: int
    version: str
    protocol: int = PROTOCOL
    job: str = ""
    """The job in the submitter's words; whose it is follows from the peer's cgroup, never from this."""


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
    """As ``sample.ChipSample``; a reading that is not there is None. ``holders`` are the pids of the
    processes on it, as the supervisor's PID namespace numbers them; None where they are not known.
    """

    name: str
    known: bool
    util: float | None = None
    mem_util: float | None = None
    power_w: float | None = None
    rx_bytes: int | None = None
    tx_bytes: int | None = None
    profiling: bool = False
    handling: str = "NONE"
    holders: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chips:
    number: int
    chips: tuple[Chip, ...] = ()


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


def encode(line: Line) -> bytes:
    """The line with its newline."""
    values = {"line": _BY_TYPE[type(line)], **to_plain(line)}
    return json.dumps(values, separators=(",", ":")).encode() + b"\n"


def decode(data: bytes) -> Line:
    """Raises ``LineError``."""
    try:
        values = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise LineError(f"not JSON: {error}") from error
    if not isinstance(values, dict):
        raise LineError("not an object")
    tag = values.get("line", "")
    of = _TAGS.get(tag) if isinstance(tag, str) else None
    if of is None:
        raise LineError(f"line: one of {', '.join(_TAGS)}, not {tag!r}")
    try:
        found: Line = from_plain(of, values, name=tag)
    except PlainError as error:
        raise LineError(str(error)) from error
    return found
