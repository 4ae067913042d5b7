"""What is read of a kernel log: its lines, where they stand, and what became of each of them.

Values only: it opens no file and understands no text.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
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
class Tally:
    """How many lines there were of each kind, and what was guessed.

    ``kernel``: in a known form, and by the kernel. ``others``: in a known form, and by somebody else, or
    part of the file's dress. ``first_unread``: which one; the number counts from 1. ``parts``: the names of
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
        """Said once, however often it is true."""
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
class Given:
    """What the lines of one file leave open. ``boot_ns``: when the seconds since boot began, 0 where nobody
    says; ``written_ns``: when it was last written; ``only``: the name of the one form that is tried;
    ``name``: which of several files it is, else "".
    """

    boot_ns: int
    written_ns: int
    tally: Tally
    only: str | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """One file, or one part of it; ``name`` is "" where there is only one.

    Sources of one ``rank`` follow each other, as /var/log/messages and its older ones. What those of several
    ranks hold is one line, and the lowest knows best. ``lines`` are read before those of the next source.
    """

    lines: Iterable[LogLine]
    name: str = ""
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Log:
    """It is read while ``sources`` are iterated, once; ``tally`` is whole afterwards."""

    sources: Iterable[Source]
    tally: Tally
