"""From lines of a kernel log to the signals that the daemon would have made of them, when it would have.

By the same matcher, and storms are counted by the same coalescer, as if each line had been read when it was
logged. A line that several sources hold is one.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from operator import attrgetter, itemgetter
from typing import Final

from msgspec.structs import replace

from nodeagent import wire
from nodeagent.core.catalog.catalog import Pattern
from nodeagent.core.model import KERNEL_LOG
from nodeagent.drivers.kmsg.coalesce import Coalescer
from nodeagent.drivers.kmsg.match import Match, Matcher
from nodeagent.drivers.kmsg.signals import line_of, signal_of
from nodeagent.replay.log import DATED_NS, Log, LogLine, Source, Tally
from nodeagent.replay.signal_line import Moment
from nodeagent.worker.signals import as_input

SOURCE: Final = KERNEL_LOG
_BATCH_LINES: Final = 512
_AT = itemgetter(LogLine._fields.index("at_ns"))
_UNREAD = itemgetter(LogLine._fields.index("unread"))


@dataclass(slots=True)
class _Found:
    """In one source: each signal behind the whole message that it is of; the last time of any line."""

    name: str
    rank: int
    signals: list[tuple[str, wire.Signal]] = field(default_factory=list)
    end_ns: int = 0
    is_dated: bool = False


def matched(log: Log, patterns: Sequence[Pattern], *, trust_userspace: bool) -> Iterator[Moment]:
    """One moment for each signal, in order of time, and a last one for the end of the log."""
    matcher = Matcher(wire.as_patterns(patterns))
    found = [_of_source(each, matcher, log.tally, trust_userspace) for each in log.sources]
    log.tally.close()
    if not log.tally.kernel:
        return
    signals = _only_once(found) if len(found) > 1 else [signal for _, signal in found[0].signals]
    signals.sort(key=attrgetter("last_ns"))
    end_ns = max(each.end_ns for each in found)
    yield from _coalesced(signals, end_ns)
    yield Moment(end_ns)


def _of_source(source: Source, matcher: Matcher, tally: Tally, trust_userspace: bool) -> _Found:
    found = _Found(source.name, source.rank)
    remaining = iter(source.lines)
    while batch := list(islice(remaining, _BATCH_LINES)):
        continued = {place for place, line in enumerate(batch) if line.continues}
        matches = matcher.match([line.message for line in batch], continued)
        found.signals += (
            (
                line.message,
                signal_of(
                    match, line_of(line.message), at_ns=line.at_ns, trusted=line.trusted or trust_userspace
                ),
            )
            for line, match in zip(batch, matches, strict=True)
            if match is not None
        )
        _see_times(batch, found)
        tally.kernel += len(batch)
        if any(map(_UNREAD, batch)):
            _tell_unread(source.name, batch, matches, tally)
    return found


def _tell_unread(
    source: str, batch: Sequence[LogLine], matches: Sequence[Match | None], tally: Tally
) -> None:
    for line, match in zip(batch, matches, strict=True):
        if line.unread:
            tally.kernel -= 1
            if match is None:
                tally.leave_unread(source, line)
            else:
                tally.take_unread()


def _see_times(batch: Sequence[LogLine], found: _Found) -> None:
    """What comes before the first date of a source ends where that begins."""
    newest_ns: int = max(map(_AT, batch))
    if newest_ns >= DATED_NS and not found.is_dated:
        first_ns = next(line.at_ns for line in batch if line.at_ns >= DATED_NS)
        before = [line.at_ns for line in batch if line.at_ns < DATED_NS]
        _set_later(found, first_ns - max([found.end_ns, *before]))
        found.is_dated = True
    found.end_ns = max(found.end_ns, newest_ns)


def _set_later(found: _Found, by_ns: int) -> None:
    """What is not dated."""
    found.signals = [
        (
            message,
            signal
            if signal.last_ns >= DATED_NS
            else replace(signal, first_ns=signal.first_ns + by_ns, last_ns=signal.last_ns + by_ns),
        )
        for message, signal in found.signals
    ]


def _only_once(found: Sequence[_Found]) -> list[wire.Signal]:
    """Without what a source of a lower rank has told. Sources without dates are set beside the others."""
    names = Counter(each.name for each in found)
    told = Counter[str]()
    when: dict[str, int] = {}
    newest_ns = max(each.end_ns for each in found)
    signals: list[wire.Signal] = []
    for _, family in groupby(sorted(found, key=attrgetter("rank")), key=attrgetter("rank")):
        left, here = told.copy(), Counter[str]()
        for each in family:
            if not each.is_dated and newest_ns >= DATED_NS:
                later_ns = _behind(each, when, newest_ns)
                _set_later(each, later_ns)
                each.end_ns += later_ns
            for message, signal in each.signals:
                here[message] += 1
                when[message] = max(when.get(message, 0), signal.last_ns)
                if left[message] > 0:
                    left[message] -= 1
                elif names[each.name] > 1:
                    signals.append(replace(signal, trusted=False))
                else:
                    signals.append(signal)
        told |= here
    return signals


def _behind(found: _Found, when: Mapping[str, int], newest_ns: int) -> int:
    """How much later the lines of a source without dates were: as the last one says that others have too;
    else they end where the others do.
    """
    for message, signal in reversed(found.signals):
        if message in when:
            return when[message] - signal.last_ns
    return newest_ns - found.end_ns


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
