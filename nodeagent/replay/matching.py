"""From lines of a log, or from a file of signals, to the signals that the daemon would have made of them.

**Log lines** pass the same matcher and the same coalescer as in the daemon, as if each line had been read
when it was logged. A line that several sources have counts once.

**Lines of a signal file** are ``{"at": ..., "source": ..., "device": ..., "code": ..., "assertion": ...}``.
With the source ``public`` a line may have the ``sender`` of a fault, its ``fault_id`` and its beginning. An
unknown, missing or wrong field is an error that names the right form; nothing is guessed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from operator import attrgetter, itemgetter
from typing import Annotated, Any, Final

from msgspec import Meta, Struct
from msgspec.structs import replace

from nodeagent import wire
from nodeagent.core.catalog.catalog import Pattern
from nodeagent.core.faults.reported import MAX_AHEAD_NS
from nodeagent.core.model import KERNEL_LOG, PUBLIC, Assertion, Report, Signal
from nodeagent.drivers.kmsg.coalesce import Coalescer
from nodeagent.drivers.kmsg.match import Match, Matcher
from nodeagent.drivers.kmsg.signals import line_of, signal_of
from nodeagent.replay.log import DATED_NS, Log, LogLine, LogSource, ReadTally, rfc3339_ns
from nodeagent.toml.fields import read_form
from nodeagent.worker.signals import as_input

Time = Annotated[
    int,
    Meta(
        ge=0,
        le=2**63 - 1,
        description='an RFC 3339 time with its zone, such as "2026-01-02T03:04:05.678Z"',
        extra={"reads": rfc3339_ns},
    ),
]
Name = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=128,
        pattern="^[!-~]+$",
        description="text in quotes: 1 to 128 printable characters without spaces",
    ),
]
Count = Annotated[int, Meta(ge=1, le=2**53, description="a whole number from 1")]
Severity = Annotated[int, Meta(ge=0, le=3, description="a whole number from 0 to 3")]
Evidence = Annotated[dict[str, str], Meta(max_length=24, description="an object of at most 24 texts")]


class SignalForm(Struct, frozen=True, kw_only=True):
    """What a source reports. ``sender``, ``fault_id`` and ``began_at`` are of what another system found."""

    at: Time
    source: Name
    device: Name
    code: Name
    assertion: Assertion
    severity: Severity | None = None
    count: Count = 1
    evidence: Evidence = {}
    sender: Name | None = None
    fault_id: Name | None = None
    began_at: Time | None = None


class AdvanceForm(Struct, frozen=True, kw_only=True):
    """Only time passes."""

    at: Time
    advance: Annotated[bool, Meta(description="true")]


@dataclass(frozen=True, slots=True)
class TimedSignal:
    """``signal`` None: only time passes."""

    at_ns: int
    signal: Signal | None = None


def read(data: dict[str, Any], report: Callable[[str, str], None]) -> TimedSignal | None:
    """None after every wrong field was reported with its reason."""

    def report_path(path: tuple[str | int, ...], reason: str) -> None:
        report(".".join(map(str, path)), reason)

    if "advance" in data:
        advance = read_form(AdvanceForm, data, (), report_path)
        if advance is None:
            return None
        if not advance.advance:
            report("advance", "false: must be true; leave the line out otherwise")
        return TimedSignal(advance.at)
    form = read_form(SignalForm, data, (), report_path)
    if form is None or not _is_whole(form, report):
        return None
    signal = Signal(
        source=form.source,
        device=form.device,
        code=form.code,
        assertion=form.assertion,
        severity=form.severity,
        count=form.count,
        first_ns=form.at,
        last_ns=form.at,
        evidence=form.evidence,
        report=_report_of(form),
    )
    return TimedSignal(form.at, signal)


def _is_whole(form: SignalForm, report: Callable[[str, str], None]) -> bool:
    """Whether the keys of a report are all there, or none; each problem is reported."""
    given = [key for key in ("sender", "fault_id", "began_at") if getattr(form, key) is not None]
    if not given:
        return True
    if form.source != PUBLIC:
        report(given[0], f'only a line with the source "{PUBLIC}" may have it')
        return False
    missing = [key for key in ("sender", "fault_id") if key not in given]
    for key in missing:
        report(key, f"missing; it goes with {given[0]}")
    is_ahead = form.began_at is not None and form.began_at > form.at + MAX_AHEAD_NS
    if is_ahead:
        report("began_at", "more than 5 minutes later than at, so that a daemon would not take it")
    return not missing and not is_ahead


def _report_of(form: SignalForm) -> Report | None:
    if form.sender is None or form.fault_id is None:
        return None
    began_ns = form.at if form.began_at is None else form.began_at
    return Report(sender=form.sender, fault_id=form.fault_id, began_ms=began_ns // 1_000_000)


SOURCE: Final = KERNEL_LOG
_BATCH_LINES: Final = 512
_AT = itemgetter(LogLine._fields.index("at_ns"))
_UNREAD = itemgetter(LogLine._fields.index("unread"))


@dataclass(slots=True)
class _FoundSignals:
    """In one source: each signal behind the whole message that it is of; the last time of any line."""

    name: str
    rank: int
    signals: list[tuple[str, wire.Signal]] = field(default_factory=list)
    end_ns: int = 0
    is_dated: bool = False


def matched(log: Log, patterns: Sequence[Pattern], *, trust_userspace: bool) -> Iterator[TimedSignal]:
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
    yield TimedSignal(end_ns)


def _of_source(source: LogSource, matcher: Matcher, tally: ReadTally, trust_userspace: bool) -> _FoundSignals:
    found = _FoundSignals(source.name, source.rank)
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
    source: str, batch: Sequence[LogLine], matches: Sequence[Match | None], tally: ReadTally
) -> None:
    for line, match in zip(batch, matches, strict=True):
        if line.unread:
            tally.kernel -= 1
            if match is None:
                tally.leave_unread(source, line)
            else:
                tally.take_unread()


def _see_times(batch: Sequence[LogLine], found: _FoundSignals) -> None:
    """What comes before the first date of a source ends where that begins."""
    newest_ns: int = max(map(_AT, batch))
    if newest_ns >= DATED_NS and not found.is_dated:
        first_ns = next(line.at_ns for line in batch if line.at_ns >= DATED_NS)
        before = [line.at_ns for line in batch if line.at_ns < DATED_NS]
        _set_later(found, first_ns - max([found.end_ns, *before]))
        found.is_dated = True
    found.end_ns = max(found.end_ns, newest_ns)


def _set_later(found: _FoundSignals, by_ns: int) -> None:
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


def _only_once(found: Sequence[_FoundSignals]) -> list[wire.Signal]:
    """Without the lines that a source of a lower rank has. Sources without dates get those of the others."""
    names = Counter(each.name for each in found)
    listed = Counter[str]()
    when: dict[str, int] = {}
    newest_ns = max(each.end_ns for each in found)
    signals: list[wire.Signal] = []
    for _, family in groupby(sorted(found, key=attrgetter("rank")), key=attrgetter("rank")):
        left, here = listed.copy(), Counter[str]()
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
        listed |= here
    return signals


def _behind(found: _FoundSignals, when: Mapping[str, int], newest_ns: int) -> int:
    """How much later the lines of a source without dates were: as their last line that others have too
    shows; else they end where the others do.
    """
    for message, signal in reversed(found.signals):
        if message in when:
            return when[message] - signal.last_ns
    return newest_ns - found.end_ns


def _coalesced(signals: Iterable[wire.Signal], end_ns: int) -> Iterator[TimedSignal]:
    """What is still counted at the end of the log is emitted there, as time goes no further."""
    coalescer = Coalescer()
    for signal in signals:
        if (due_ns := coalescer.due_ns) is not None and due_ns <= signal.last_ns:
            yield from _moments(coalescer.flush(due_ns), due_ns)
        yield from _moments(coalescer.add(signal, signal.last_ns), signal.last_ns)
    if (due_ns := coalescer.due_ns) is not None:
        yield from _moments(coalescer.flush(end_ns), min(due_ns, end_ns))


def _moments(signals: Iterable[wire.Signal], at_ns: int) -> Iterator[TimedSignal]:
    """The rule clock is that of the log."""
    return (TimedSignal(at_ns, as_input(SOURCE, signal, lambda stamp_ns: stamp_ns)) for signal in signals)
