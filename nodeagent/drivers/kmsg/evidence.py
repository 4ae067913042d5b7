"""What is kept of a record beside the signal it makes: every value bounded and printable."""

from typing import Final

from nodeagent.drivers.kmsg.match import Match, as_name
from nodeagent.drivers.kmsg.parse import Record, printable
from nodeagent.worker.protocol import MAX_EVIDENCE

MAX_LINE: Final = 1024
MAX_VALUE: Final = 256


def evidence_of(record: Record, match: Match) -> dict[str, str]:
    """The line, where it stood, and what the pattern made of it."""
    evidence = place_of(record) | {"pattern": printable(match.pattern)[:MAX_VALUE]}
    for name, value in (*match.groups.items(), *record.continuation.items()):
        if len(evidence) >= MAX_EVIDENCE:
            break
        evidence.setdefault(as_name(name), printable(value)[:MAX_VALUE])
    return evidence


def place_of(record: Record) -> dict[str, str]:
    """The line and where it stood."""
    return {
        "line": printable(record.message)[:MAX_LINE],
        "kernel_seq": str(record.seq),
        "kernel_time_us": str(record.boottime_us),
    }
