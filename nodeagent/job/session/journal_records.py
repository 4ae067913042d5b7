"""What was given to a session, as lines of its journal: one JSON object each, with the time.

Written in order, and replayed in order: the session is the same then. A bad line is an error: what follows
from a gap cannot be known. It reads and writes no file.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from nodeagent.job.inputs import (
    Began,
    Emptied,
    Exited,
    Gathered,
    Given,
    Hung,
    LinkBack,
    LinkLost,
    NotRun,
    Progressed,
    Ran,
    Signalled,
    Tick,
    Wanted,
)
from nodeagent.job.orders import Order
from nodeagent.job.plain import PlainError, from_plain, to_plain
from nodeagent.job.session.session import Session

_TAGS: Final[Mapping[str, type[Any]]] = {
    "began": Began,
    "wanted": Wanted,
    "link_lost": LinkLost,
    "link_back": LinkBack,
    "ran": Ran,
    "not_run": NotRun,
    "exited": Exited,
    "emptied": Emptied,
    "hung": Hung,
    "gathered": Gathered,
    "progressed": Progressed,
    "signalled": Signalled,
    "tick": Tick,
}
_BY_TYPE: Final = {of: tag for tag, of in _TAGS.items()}


class JournalError(ValueError):
    """The journal cannot be replayed. The text names the line, and what is wrong with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    at_ns: int
    given: Given


def encode(at_ns: int, given: Given) -> bytes:
    """The record as a line with its newline."""
    values = {"at_ns": at_ns, "given": _BY_TYPE[type(given)], **to_plain(given)}
    return json.dumps(values, separators=(",", ":")).encode() + b"\n"


def decode(lines: Iterable[bytes]) -> tuple[Record, ...]:
    """Raises ``JournalError``."""
    return tuple(_record(line, number) for number, line in enumerate(lines, start=1))


def replay(records: Iterable[Record]) -> tuple[Session, tuple[Order, ...]]:
    """The session as it was, and all that it ordered."""
    session = Session()
    orders = [order for record in records for order in session.step(record.at_ns, record.given)]
    return session, tuple(orders)


def _record(line: bytes, number: int) -> Record:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise JournalError(f"line {number}: not JSON: {error}") from error
    tag = values.get("given") if isinstance(values, dict) else None
    of = _TAGS.get(tag) if isinstance(tag, str) else None
    if of is None:
        raise JournalError(f"line {number}: given: one of {', '.join(_TAGS)}, not {tag!r}")
    at_ns = values.get("at_ns")
    if type(at_ns) is not int:
        raise JournalError(f"line {number}: at_ns: int, not {at_ns!r}")
    try:
        given: Given = from_plain(of, values, name=str(tag))
    except PlainError as error:
        raise JournalError(f"line {number}: {error}") from error
    return Record(at_ns=at_ns, given=given)
