"""What a matched line is told as: a signal whose evidence is bounded and fit for a terminal. Pure.

A log that is replayed is told the same way, so that both say the same of the same line.
"""

from collections.abc import Mapping
from typing import Final

from nodeagent.drivers.kmsg.match import Match, as_name
from nodeagent.drivers.kmsg.parse import printable
from nodeagent.worker.protocol import MAX_EVIDENCE, Signal

MAX_LINE: Final = 1024
MAX_VALUE: Final = 256

_NOTHING: Final[Mapping[str, str]] = {}


def signal_of(
    match: Match,
    message: str,
    *,
    at_ns: int,
    trusted: bool,
    backdated: bool = False,
    place: Mapping[str, str] = _NOTHING,
    properties: Mapping[str, str] = _NOTHING,
) -> Signal:
    """``place``: where the line stood in its log; ``properties``: what the kernel says of it besides."""
    evidence = {
        "line": printable(message)[:MAX_LINE],
        **place,
        "pattern": printable(match.pattern)[:MAX_VALUE],
    }
    for name, value in (*match.groups.items(), *properties.items()):
        if len(evidence) >= MAX_EVIDENCE:
            break
        evidence.setdefault(as_name(name), printable(value)[:MAX_VALUE])
    return Signal(
        device=match.device,
        code=match.code,
        assertion=match.assertion,
        first_ns=at_ns,
        last_ns=at_ns,
        evidence=evidence,
        backdated=backdated,
        trusted=trusted,
    )
