"""What a matched line is reported as: a signal whose evidence is bounded and fit for a terminal. Pure.

A log that is replayed is reported the same way.
"""

from collections.abc import Mapping
from typing import Final

from nodeagent.drivers.kmsg.match import Match, as_name
from nodeagent.drivers.kmsg.parse import Record, printable
from nodeagent.wire import MAX_EVIDENCE, Signal

MAX_LINE: Final = 1024
MAX_VALUE: Final = 256

_NOTHING: Final[Mapping[str, str]] = {}


def signal_of(
    match: Match,
    place: Mapping[str, str],
    *,
    at_ns: int,
    trusted: bool,
    backdated: bool = False,
    properties: Mapping[str, str] = _NOTHING,
) -> Signal:
    """``place``: the line and its place in its log; ``properties``: what else the kernel adds."""
    return Signal(
        device=match.device,
        code=match.code,
        assertion=match.assertion,
        count=match.count,
        first_ns=at_ns,
        last_ns=at_ns,
        evidence=evidence_of(place, match, properties),
        backdated=backdated,
        trusted=trusted,
    )


def evidence_of(place: Mapping[str, str], match: Match, properties: Mapping[str, str]) -> dict[str, str]:
    """The line and its place, what the pattern made of it, and the properties that the kernel adds."""
    evidence = {**place, "pattern": printable(match.pattern)[:MAX_VALUE]}
    for name, value in (*match.groups.items(), *properties.items()):
        if len(evidence) >= MAX_EVIDENCE:
            break
        evidence.setdefault(as_name(name), printable(value)[:MAX_VALUE])
    return evidence


def place_of(record: Record) -> dict[str, str]:
    """The line and its place."""
    return line_of(record.message) | {
        "kernel_seq": str(record.seq),
        "kernel_time_us": str(record.boottime_us),
    }


def line_of(message: str) -> dict[str, str]:
    """The line alone, if its place is not known."""
    return {"line": printable(message)[:MAX_LINE]}
