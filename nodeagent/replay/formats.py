"""From a file to what it holds: lines of a kernel log, or signals with their times. Parse only.

A file whose first line begins with ``{`` is JSON lines: signals, or entries of the journal. One that begins
with a field of the journal is its export. Any other file is text of a kernel log.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar

import msgspec

from nodeagent.replay import journal_export, journal_text, signal_line
from nodeagent.replay.kernel_text import KernelText, LogLine
from nodeagent.replay.reading import Reports, lines, opened
from nodeagent.replay.signal_line import Moment
from nodeagent.toml.problem import Problems

MAX_MOMENTS: Final = 2_000_000

Found = TypeVar("Found")

_JOURNAL_FILE: Final = b"LPKSHHRH"
_PACKED: Final = {b"\xfd7zXZ\0": "xz", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd", b"PK\x03\x04": "zip"}
"""What such a file begins with. Read as text it would be a log in which nothing happened."""
_DECODER: Final = msgspec.json.Decoder(dict[str, Any])


@dataclass(frozen=True, slots=True)
class Log:
    """Lines of a kernel log in the order of the file, each with a time; it is read while it is iterated.

    ``recognised``: what was iterated has the form of a log, or is empty. Text may also be anything else.
    """

    lines: Iterable[LogLine]
    recognised: Callable[[], bool] = lambda: True


@dataclass(frozen=True, slots=True)
class Signals:
    """Moments in the order of the file."""

    moments: tuple[Moment, ...]


def read(path: Path, boot_ns: int) -> Log | Signals:
    """``boot_ns`` is the wall time from which seconds since boot count.

    Raises ReplayError with everything that is wrong; iterating a Log may raise it too.
    """
    reports = Reports(str(path), Problems())
    with opened(path, reports) as file:
        beginning = file.read(journal_export.BEGINNING_BYTES)
        for magic, packer in _PACKED.items():
            if beginning.startswith(magic):
                reports.add(None, "", f"packed by {packer}: unpack it first; gzip alone is undone here")
        reports.raise_any()
        if beginning.startswith(_JOURNAL_FILE):
            reports.add(
                None, "", "a file of the journal itself: replay what journalctl -o export makes of it"
            )
            reports.raise_any()
        if journal_export.begins(beginning):
            return Log(_found_in(path, reports, journal_export.read))
        file.seek(0)
        first = next((text for block in lines(file, reports) for text in block if text.strip()), "")
    reports.raise_any()
    if not first.lstrip().startswith("{"):
        text = KernelText(boot_ns, path.stat().st_mtime_ns)
        return Log(_found_in(path, reports, text.read_file), lambda: text.recognised > 0 or not first)
    if _is_journal(first):
        return Log(_found_in(path, reports, _journal_entries))
    return Signals(tuple(_found_in(path, reports, _moments)))


def _found_in(
    path: Path, reports: Reports, reader: Callable[[BinaryIO, Reports], Iterable[Found]]
) -> Iterator[Found]:
    """What the reader finds in the file; at the end, what was wrong is raised."""
    with opened(path, reports) as file:
        yield from reader(file, reports)
    reports.raise_any()


def _is_journal(first: str) -> bool:
    try:
        return journal_text.is_entry(_DECODER.decode(first))
    except (msgspec.DecodeError, RecursionError):
        return False  # reported when it is read as a signal


def _journal_entries(file: BinaryIO, reports: Reports) -> Iterator[LogLine]:
    for number, data in _objects(file, reports):
        entry = journal_text.read(data, partial(reports.add, number))
        if entry is not None:
            yield entry


def _moments(file: BinaryIO, reports: Reports) -> Iterator[Moment]:
    for count, (number, data) in enumerate(_objects(file, reports)):
        if count == MAX_MOMENTS:
            reports.add(number, "", f"more than {MAX_MOMENTS} signals; split the file")
            return
        moment = signal_line.read(data, partial(reports.add, number))
        if moment is not None:
            yield moment


def _objects(file: BinaryIO, reports: Reports) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each with the number of its line, from 1."""
    for number, text in enumerate(chain.from_iterable(lines(file, reports)), start=1):
        if text.strip() and (data := _decode(number, text, reports)) is not None:
            yield number, data


def _decode(number: int, text: str, reports: Reports) -> dict[str, Any] | None:
    try:
        return _DECODER.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        reports.add(number, "", f"must be one JSON object on a line: {error}")
        return None
