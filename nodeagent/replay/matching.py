"""From lines of a kernel log to the signals that the daemon would have made of them, when it would have.

By the same matcher, and storms are counted by the same coalescer, as if each line had been read when it was
logged.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import Final

from nodeagent import wire
from nodeagent.core.catalog.catalog import Pattern
from nodeagent.core.model import KERNEL_LOG
from nodeagent.drivers.kmsg.coalesce import Coalescer
from nodeagent.drivers.kmsg.evidence import line_of
from nodeagent.drivers.kmsg.match import Matcher
from nodeagent.drivers.kmsg.signals import signal_of
from nodeagent.replay.kernel_text import LogLine
from nodeagent.replay.signal_line import Moment
from nodeagent.worker.signals import as_input

SOURCE: Final = KERNEL_LOG
_BATCH_LINES: Final = 512


def matched(
    lines: Iterable[LogLine], patterns: Sequence[Pattern], *, trust_userspace: bool
) -> Iterator[Moment]:
    """One moment for each signal, in order of time, and a last one for the end of the log."""
    matcher = Matcher(wire.as_patterns(patterns))
    remaining = iter(lines)
    signals: list[wire.Signal] = []
    end_ns: int | None = None
    while batch := list(islice(remaining, _BATCH_LINES)):
        newest_ns = max(line.at_ns for line in batch)
        end_ns = newest_ns if end_ns is None else max(end_ns, newest_ns)
        continued = {place for place, line in enumerate(batch) if line.continues}
        matches = matcher.match([line.message for line in batch], continued)
        signals += (
            signal_of(match, line_of(line.message), at_ns=line.at_ns, trusted=line.trusted or trust_userspace)
            for line, match in zip(batch, matches, strict=True)
            if match is not None
        )
    if end_ns is not None:
        signals.sort(key=attrgetter("last_ns"))
        yield from _coalesced(signals, end_ns)
        yield Moment(end_ns)


def _coalesced(signals: Iterable[wire.Signal], end_ns: int) -> Iterator[Moment]:
    """What is still counted at the end of the log is emitted there, as time goes no further."""
    coalescer = Coalescer()
    for signal in signals:
        if (due_ns := coalescer.due_ns) is not None and due_ns <= signal.last_ns:
            yield from _moments(coalescer.flush(due_ns), due_ns)
        yield from _moments(coalescer.add(signal, signal.last_ns), signal.last_ns)
    if (due_ns := coalescer.due_ns) is not None:
        yield from _moments(coalescer.flush(end_ns), min(due_ns, end_ns))


def _moments(signals: Iterable[wire.Signal], at_ns: int) -> Iterator[Moment]:
    """The rule clock is that of the log."""
    return (Moment(at_ns, as_input(SOURCE, said, lambda stamp_ns: stamp_ns)) for said in signals)
