"""What is kept of a line beside the signal it makes: every value bounded and printable."""

from collections.abc import Mapping
from typing import Final

from nodeagent.drivers.kmsg.match import Match, as_name
from nodeagent.drivers.kmsg.parse import Record, printable
from nodeagent.wire import MAX_EVIDENCE

MAX_LINE: Final = 1024
MAX_VALUE: Final = 256


def evidence_of(place: Mapping[str, str], match: Match, properties: Mapping[str, str]) -> dict[str, str]:
    """The line and where it stood, what the pattern made of it, and what the kernel says of it besides."""
    evidence = {**place, "pattern": printable(match.pattern)[:MAX_VALUE]}
    for name, value in (*match.groups.items(), *properties.items()):
        if len(evidence) >= MAX_EVIDENCE:
            break
        evidence.setdefault(as_name(name), printable(value)[:MAX_VALUE])
    return evidence


def place_of(record: Record) -> dict[str, str]:
    """The line and where it stood."""
    return line_of(record.message) | {
        "kernel_seq": str(record.seq),
        "kernel_time_us": str(record.boottime_us),
    }


def line_of(message: str) -> dict[str, str]:
    """The line alone, of which nothing says where it stood."""
    return {"line": printable(message)[:MAX_LINE]}
