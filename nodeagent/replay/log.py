"""The values of a log that is read: lines, sources, counts of lines; and the times in them.

Times are nanoseconds of wall time. A time without a zone is UTC. What a text leaves open (the year, the boot)
is an argument; no clock is read, and no file is opened.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

YEAR_NS: Final = 365 * 86_400 * 1_000_000_000
DATED_NS: Final = 10 * YEAR_NS
"""A time before this counts from a boot, or from the beginning of the file: no node ran for so long, and
none logged in the years after 1970."""

_CLOCK: Final = re.compile(r"\d:\d\d:\d\d|\d{4}-\d\d-\d\d")


UNKNOWN_WRITER: Final = -1


class LogLine(NamedTuple):
    """``trusted`` false: user space wrote it. ``continues``: it is the rest of another line. ``unread``: the
    number of the line in its file, where it is in no form that is known; else 0, or UNKNOWN_WRITER where its
    time is read, but it may be any program's. A tuple: a log has millions.
    """

    at_ns: int
    message: str
    trusted: bool = True
    continues: bool = False
    unread: int = 0


@dataclass(slots=True)
class ReadTally:
    """How many lines there were of each kind, and what was guessed.

    ``kernel``: in a known form, and by the kernel. ``others``: in a known form, and by another writer, or
    a line that a tool added. ``first_unread``: which one; the number counts from 1. ``parts``: the names of
    what was taken from a file that holds several logs. ``has_times``: false where a source has none.
    """

    kernel: int = 0
    others: int = 0
    unread: int = 0
    first_unread: tuple[str, int] | None = None
    remarks: dict[str, None] = field(default_factory=dict)
    parts: dict[str, None] = field(default_factory=dict)
    has_times: bool = True
    _untimed_taken: int = 0
    _untimed: int = 0
    _first_untimed: tuple[str, int] | None = None

    def remark(self, text: str) -> None:
        """Reported once, however often it is true."""
        self.remarks[text] = None

    def take_unread(self) -> None:
        """A line in no known form that a pattern takes: so it is the kernel's."""
        self._untimed_taken += 1

    def leave_unread(self, source: str, line: LogLine) -> None:
        """One that none takes. Where it has a clock in it, that is a time that is not understood."""
        if line.unread == UNKNOWN_WRITER:
            self.others += 1
        elif _CLOCK.search(line.message):
            self.leave(source, line.unread)
        else:
            self._untimed += 1
            self._first_untimed = self._first_untimed or (source, line.unread)

    def leave(self, source: str, number: int) -> None:
        """A line that is not understood."""
        self.unread += 1
        self.first_unread = self.first_unread or (source, number)

    def close(self) -> None:
        """Lines without any time are a log of its own form (``dmesg -t``) where nothing else is, and a
        pattern takes one of them.
        """
        is_bare_log = self._untimed_taken and not self.kernel and not self.others
        self.kernel += self._untimed_taken
        if is_bare_log:
            self.kernel += self._untimed
        elif self._first_untimed is not None:
            self.unread += self._untimed
            first = self.first_unread
            if first is None or (first[0] == self._first_untimed[0] and first[1] > self._first_untimed[1]):
                self.first_unread = self._first_untimed
        self._untimed_taken = self._untimed = 0

    @property
    def lines(self) -> int:
        return self.kernel + self.others + self.unread

    @property
    def is_mostly_unread(self) -> bool:
        return 2 * self.unread > self.lines


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenFile:
    """What the lines of one file leave open. ``boot_ns``: when the seconds since boot began, 0 if
    unknown; ``written_ns``: when it was last written; ``only``: the name of the one form that is tried;
    ``name``: which of several files it is, else "".
    """

    boot_ns: int
    written_ns: int
    tally: ReadTally
    only: str | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class LogSource:
    """One file, or one part of it; ``name`` is "" where there is only one.

    Sources of one ``rank`` follow each other, as /var/log/messages and its older ones. A line in several
    ranks counts once, as the lowest has it. ``lines`` are read before those of the next source.
    """

    lines: Iterable[LogLine]
    name: str = ""
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Log:
    """It is read while ``sources`` are iterated, once; ``tally`` is whole afterwards."""

    sources: Iterable[LogSource]
    tally: ReadTally


SECOND_NS: Final = 1_000_000_000
_UNIT_NS: Final = tuple(10 ** (9 - digits) for digits in range(10))
_SECONDS_KEPT: Final = 4096
_YEARS_TO_A_LEAP_DAY: Final = 8

_RFC3339: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9})\d*)?(?:([Zz])|([+-])(\d\d):?(\d\d))?"
)
_RIGHT: Final = 'must be an RFC 3339 time with its zone, such as "2026-01-02T03:04:05.678Z"'


def rfc3339_ns(text: object) -> int:
    """Strictly: a zone is needed. Raises ValueError with what would be right."""
    found = _RFC3339.fullmatch(text) if isinstance(text, str) else None
    if found is None or not (found[4] or found[5]):
        raise ValueError(_RIGHT)
    try:
        at_ns = iso_ns(found)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{error}; {_RIGHT}") from None
    if at_ns < 0:
        raise ValueError("must not lie before 1970")
    return at_ns


def iso_ns(found: re.Match[str]) -> int:
    """The time of the groups date, time, fraction, Z, sign, hours, minutes. Raises ValueError for a day that
    never was.
    """
    date, clock, fraction, _, sign, hours, minutes = found.groups()
    at_ns = utc_ns(f"{date}T{clock}") + fraction_ns(fraction)
    return at_ns - zone_ns(f"{sign}{hours}:{minutes}") if sign else at_ns


def latest_ns(month: int, day: int, clock: str, written_ns: int) -> int:
    """The latest such day that is not beyond the end of a file last written at ``written_ns``.

    Raises ValueError for a day that never was.
    """
    year, end_ns = _end(written_ns)
    for earlier in range(_YEARS_TO_A_LEAP_DAY + 1):
        try:
            at_ns = calendar_ns(year - earlier, month, day, clock)
        except ValueError:
            continue
        if at_ns <= end_ns:
            return at_ns
    raise ValueError(f"there was no {month:02}-{day:02} {clock}")


def nearest_ns(month: int, day: int, clock: str, near_ns: int) -> int:
    """The nearest such day. Raises ValueError for a day that never was."""
    year = datetime.fromtimestamp(near_ns / SECOND_NS, UTC).year
    found = []
    for other in range(year - _YEARS_TO_A_LEAP_DAY // 2, year + _YEARS_TO_A_LEAP_DAY // 2 + 1):
        try:
            found.append(calendar_ns(other, month, day, clock))
        except ValueError:
            continue
    if not found:
        raise ValueError(f"there was no {month:02}-{day:02} {clock}")
    return min(found, key=lambda at_ns: abs(at_ns - near_ns))


def calendar_ns(year: int, month: int, day: int, clock: str) -> int:
    """Raises ValueError for a day that never was."""
    return utc_ns(f"{year:04}-{month:02}-{day:02}T{clock}")


def fraction_ns(digits: str | None) -> int:
    """The fraction that the digits after the point mean, 9 at most."""
    return int(digits) * _UNIT_NS[len(digits)] if digits else 0


@lru_cache(maxsize=_SECONDS_KEPT)
def utc_ns(text: str) -> int:
    """A log has many lines in each second. Raises ValueError for a day that never was."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * SECOND_NS


@lru_cache(maxsize=1)
def _end(written_ns: int) -> tuple[int, int]:
    """A day beyond the end of the file: its year, and that moment. Zones may lie a day apart."""
    latest = datetime.fromtimestamp(written_ns / SECOND_NS, UTC) + timedelta(days=1)
    return latest.year, int(latest.timestamp()) * SECOND_NS


@lru_cache(maxsize=16)
def zone_ns(text: str) -> int:
    """How far ``+08:00`` is ahead of UTC. Raises ValueError for what is no zone."""
    hours, _, minutes = text[1:].partition(":")
    if int(hours) > 23 or int(minutes) > 59:
        raise ValueError(f"{text} is no zone")
    ahead_ns = (int(hours) * 3600 + int(minutes) * 60) * SECOND_NS
    return -ahead_ns if text[0] == "-" else ahead_ns
