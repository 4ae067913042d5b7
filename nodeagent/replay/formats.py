"""From a path to what it holds: lines of a kernel log, or signals with their times. Parse only.

A folder or an archive holds logs; a file whose first line begins with ``{`` and is no log in JSON holds
signals. Any other file is a log.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from nodeagent.replay import collection, journal, json_log, matching, readers
from nodeagent.replay.collection import begins, bug_report_sources
from nodeagent.replay.log import GivenFile, Log, LogLine, LogSource, ReadTally
from nodeagent.replay.matching import TimedSignal
from nodeagent.replay.reading import PACKING_ERRORS, Reports, lines, opened, readable, strictly
from nodeagent.toml.problem import Problems

MAX_MOMENTS: Final = 2_000_000


@dataclass(frozen=True, slots=True)
class SignalsOfLog:
    """Moments in the order of the file."""

    moments: tuple[TimedSignal, ...]


def read(path: Path, boot_ns: int, only: str | None = None) -> Log | SignalsOfLog:
    """``boot_ns`` is the wall time from which seconds since boot count, 0 if unknown; ``only``: the
    name of the one form that the lines have (``readers.EXAMPLES``).

    Raises ReplayError with everything that is wrong; iterating a Log may raise it too.
    """
    reports = Reports(str(path), Problems())
    tally = ReadTally()
    given = GivenFile(boot_ns=boot_ns, written_ns=0, tally=tally, only=only)
    if path.is_dir():
        beginning = b""
    else:
        with opened(path, reports) as text:
            beginning = text.beginning
        given = replace(given, written_ns=path.stat().st_mtime_ns)
    if (members := collection.members_of(path, beginning)) is not None:
        return Log(collection.sources(path, members, given, reports), tally)
    if only is None and _are_signals(beginning):
        return SignalsOfLog(tuple(_moments(path, reports)))
    return Log(_sources(path, beginning, given, reports), tally)


def _sources(path: Path, beginning: bytes, given: GivenFile, reports: Reports) -> Iterator[LogSource]:
    """Of one file; at the end, what was wrong is raised."""
    if beginning.startswith(journal.MAGIC):
        yield LogSource(_of_journal(path, given, reports))
    else:
        with opened(path, reports) as text:
            if begins(text.beginning):
                yield from bug_report_sources(readable(lines(text, lambda _: None), reports), given)
            else:
                found = readers.reader_of(text, given.only).read(text, reports, given)
                yield LogSource(readable(found, reports))
    reports.raise_any()


def _of_journal(path: Path, given: GivenFile, reports: Reports) -> Iterator[LogLine]:
    try:
        with journal.exported(path) as text:
            yield from journal.read_export(text, reports, given)
    except PACKING_ERRORS as error:
        reports.add(None, "", str(error))


def _are_signals(beginning: bytes) -> bool:
    first = readers.first_line(beginning)
    return first.lstrip().startswith("{") and not (json_log.begins(first) or json_log.is_of_container(first))


def _moments(path: Path, reports: Reports) -> Iterator[TimedSignal]:
    with opened(path, reports) as text:
        objects = json_log.by_line(lines(text, strictly(reports)), reports)
        for count, (number, data) in enumerate(objects):
            if count == MAX_MOMENTS:
                reports.add(number, "", f"more than {MAX_MOMENTS} signals; split the file")
                break
            moment = matching.read(data, partial(reports.add, number))
            if moment is not None:
                yield moment
    reports.raise_any()
