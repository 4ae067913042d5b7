"""What a matched line is reported as: a signal whose evidence is bounded and fit for a terminal. Pure.

A log that is replayed is reported the same way, so that both say the same of the same line.
"""

from collections.abc import Mapping
from typing import Final

from nodeagent.drivers.kmsg.evidence import evidence_of
from nodeagent.drivers.kmsg.match import Match
from nodeagent.wire import Signal

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
    """``place``: the line and where it stood in its log; ``properties``: what the kernel says besides."""
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
