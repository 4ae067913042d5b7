"""From a file to what was heard: lines of a kernel log, or signals with their times. Parse only.

A file whose first line begins with ``{`` is JSON lines: signals, or entries of the journal. Any other file
is text of a kernel log.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from nodeagent.replay import journal_text, signal_line
from nodeagent.replay.kernel_text import KernelText, LogLine
from nodeagent.replay.reading import Reports, lines
from nodeagent.replay.signal_line import Moment
from nodeagent.toml.problem import Problems

MAX_MOMENTS: Final = 2_000_000

_DECODER: Final = msgspec.json.Decoder(dict[str, Any])


@dataclass(frozen=True, slots=True)
class Log:
    """Lines of a kernel log in the order of the file, each with a time; it is read while it is iterated."""

    lines: Iterable[LogLine]


@dataclass(frozen=True, slots=True)
class Signals:
    """Moments in the order of the file."""

    moments: tuple[Moment, ...]


def read(path: Path, boot_ns: int) -> Log | Signals:
    """``boot_ns`` is the wall time from which seconds since boot count.

    Raises ReplayError with everything that is wrong; iterating a Log may raise it too.
    """
    reports = Reports(str(path), Problems())
    numbered = lines(path, reports)
    first = next(((number, text) for number, text in numbered if text.strip()), None)
    reports.raise_any()
    if first is None:
        return Signals(())
    everything = _again(first, numbered)
    if not first[1].lstrip().startswith("{"):
        text = KernelText(boot_ns, path.stat().st_mtime_ns)
        return Log(_timed(_kernel_lines(everything, text), boot_ns, reports))
    decoded = _decode(first, reports)
    if decoded is not None and journal_text.is_entry(decoded):
        return Log(_timed(_journal_entries(everything, reports), boot_ns, reports))
    return Signals(_moments(everything, reports))


def _again(first: tuple[int, str], rest: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    yield first
    yield from rest


def _kernel_lines(numbered: Iterable[tuple[int, str]], text: KernelText) -> Iterator[LogLine]:
    for _, line in numbered:
        if (read_line := text.read(line)) is not None:
            yield read_line


def _journal_entries(numbered: Iterable[tuple[int, str]], reports: Reports) -> Iterator[LogLine]:
    for number, data in _objects(numbered, reports):
        entry = journal_text.read(data, partial(reports.add, number))
        if entry is not None:
            yield entry


def _timed(found: Iterable[LogLine], boot_ns: int, reports: Reports) -> Iterator[LogLine]:
    """A line without a time happened when the one before it did."""
    at_ns = boot_ns
    for line in found:
        if line.at_ns is None:
            yield LogLine(at_ns, line.message, line.trusted)
        else:
            at_ns = line.at_ns
            yield line
    reports.raise_any()


def _moments(numbered: Iterable[tuple[int, str]], reports: Reports) -> tuple[Moment, ...]:
    moments = []
    for number, data in _objects(numbered, reports):
        moment = signal_line.read(data, partial(reports.add, number))
        if moment is not None:
            moments.append(moment)
        if len(moments) > MAX_MOMENTS:
            reports.add(number, "", f"more than {MAX_MOMENTS} signals; split the file")
            break
    reports.raise_any()
    return tuple(moments)


def _objects(numbered: Iterable[tuple[int, str]], reports: Reports) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, text in numbered:
        if text.strip() and (data := _decode((number, text), reports)) is not None:
            yield number, data


def _decode(numbered: tuple[int, str], reports: Reports) -> dict[str, Any] | None:
    number, text = numbered
    try:
        return _DECODER.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        reports.add(number, "", f"must be one JSON object on a line: {error}")
        return None
