"""From lines of a kernel log to the signals that the daemon would have made of them, by the same matcher.

Storms are not coalesced: each line is a signal of its own.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from nodeagent.core.catalog import Pattern
from nodeagent.core.model import Signal
from nodeagent.drivers.kmsg.match import Match, Matcher, as_name
from nodeagent.drivers.kmsg.parse import printable
from nodeagent.replay.kernel_text import LogLine
from nodeagent.replay.signal_line import Moment
from nodeagent.worker import protocol

SOURCE: Final = "kmsg"
_BATCH_LINES: Final = 512
_MAX_TEXT: Final = 1024


def matched(
    lines: Iterable[LogLine], patterns: Sequence[Pattern], *, trust_userspace: bool
) -> Iterator[Moment]:
    """One moment for each line that a pattern matches, and a last one for the end of the log."""
    matcher = Matcher(
        [
            protocol.Pattern(
                id=each.id,
                code=each.code,
                regex=each.regex,
                device=each.device,
                assertion=each.assertion,
            )
            for each in patterns
        ]
    )
    remaining = iter(lines)
    last_ns: int | None = None
    while batch := list(islice(remaining, _BATCH_LINES)):
        times, messages, _ = zip(*batch, strict=True)
        newest_ns = max(times)
        last_ns = newest_ns if last_ns is None else max(last_ns, newest_ns)
        for line, match in zip(batch, matcher.match(messages), strict=True):
            if match is not None:
                yield Moment(line.at_ns, _signal(line, match, trust_userspace))
    if last_ns is not None:
        yield Moment(last_ns)


def _signal(line: LogLine, match: Match, trust_userspace: bool) -> Signal:
    evidence = {"line": printable(line.message)[:_MAX_TEXT], "pattern": match.pattern}
    for name, value in match.groups.items():
        evidence.setdefault(as_name(name), printable(value)[:_MAX_TEXT])
    return Signal(
        source=SOURCE,
        device=match.device,
        code=match.code,
        assertion=match.assertion,
        first_ns=line.at_ns,
        last_ns=line.at_ns,
        evidence=evidence,
        trusted=line.trusted or trust_userspace,
    )
