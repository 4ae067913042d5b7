"""One line of a kernel log in any of the forms in which people keep it: its time, its message, who wrote it.

dmesg plain, with seconds since boot, -T, -x, -r, --time-format iso, delta, reltime; syslog; journalctl short
and its variants; raw records of /dev/kmsg. Parses only, and cannot fail: a line without a time that it knows
is all message, and happened when the line before it did.

What the forms leave out is unknown: who wrote a line, but for -x, -r and records; and which lines are
the rest of another. dmesg and journalctl set the further lines of one message below its first.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple

from nodeagent.drivers.kmsg import parse
from nodeagent.replay import stamps
from nodeagent.replay.reading import Reports, lines

_RAW: Final = re.compile(r"\d+,\d+,\d+,[^;]*;")
_PREFIX: Final = re.compile(
    r"<(\d{1,3})>"
    r"|(kern|user|mail|daemon|auth|syslog|lpr|news|uucp|cron|authpriv|ftp|local[0-7]) *"
    r":(?:emerg|alert|crit|err|warn|notice|info|debug) *: "
)
_CALLER: Final = r"(?: ?\[ *[TC]\d{1,10}\])? ?"
"""The task or processor that logged it, where the kernel or dmesg shows that."""
_SINCE_BOOT: Final = re.compile(r"\[ *(\d{1,12})\.(\d{1,9})(?: <[ \d.]+>)?\]" + _CALLER)
_HOST_AND_KERNEL: Final = re.compile(r"[\w.-]++ kernel: ")
_CTIME: Final = re.compile(
    r"\[[A-Z][a-z]{2} ([A-Z][a-z]{2}) +(\d{1,2}) (\d\d:\d\d:\d\d) (\d{4})[^]]*\]" + _CALLER
)
_MINUTE: Final = re.compile(r"\[([A-Z][a-z]{2}) ?(\d{1,2}) (\d\d:\d\d)\]" + _CALLER)
_SINCE_LAST: Final = re.compile(r"(?:\[ *\+(\d{1,9})\.(\d{1,9})\]|\[<[ \d.]+>\])" + _CALLER)
_ISO: Final = re.compile(
    r"(?:[A-Z][a-z]{2} )?(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)"
    r"(?:[.,](\d{1,9}))?(?:(Z)|([+-])(\d\d):?(\d\d)| [A-Z]{3,4})? "
)
_SYSLOG: Final = re.compile(r"([A-Z][a-z]{2}) +(\d{1,2}) (\d\d:\d\d:\d\d)(?:\.(\d{1,9}))? ")
_UNIX: Final = re.compile(r"(\d{9,11})\.(\d{6}) ")
_KERNEL: Final = re.compile(r" *(?:[\w.:-]++(?<!:) +){0,2}kernel: ")
"""No word of a host ends with a colon, and no line of the kernel has a process: those are other writers'."""
_ISO_CALLER: Final = re.compile(r"\[ *[TC]\d{1,10}\] ")
_LONGEST_MESSAGE: Final = 8192
"""No more is kept of the further lines of one message; the kernel's longest record is as long."""


class LogLine(NamedTuple):
    """``trusted`` false: user space wrote it. ``continues``: it is the rest of another line. A tuple: a log
    has millions."""

    at_ns: int
    message: str
    trusted: bool = True
    continues: bool = False


class KernelText:
    """Reads lines in order. Seconds since boot begin at ``boot_ns``; the file ends at ``written_ns``.

    ``recognised`` counts those so far that bear a time, or the mark of a priority.
    """

    def __init__(self, boot_ns: int, written_ns: int) -> None:
        self._boot_ns = boot_ns
        self._written_ns = written_ns
        self._last_ns = boot_ns
        self._in_record = False
        self.recognised = 0

    def read_file(self, file: BinaryIO, reports: Reports) -> Iterator[LogLine]:
        """Leaves out what the kernel did not log: another program's line, a record's properties, nothing."""
        begun: LogLine | None = None
        margin = 0
        for block in lines(file, reports):
            for text in block:
                if margin and begun is not None and text[:1] == " " and not text[:margin].strip(" "):
                    begun = _longer(begun, text[margin:])
                    continue
                if begun is not None:
                    yield begun
                self.recognised += 1
                begun, margin = self._read(text), 0
                if begun is not None:
                    self._last_ns = begun.at_ns
                    margin = len(text) - len(begun.message)
        if begun is not None:
            yield begun

    def _read(self, text: str) -> LogLine | None:
        """What the first character cannot begin is not tried: most of the time goes into failing."""
        first = text[:1]
        if first == " " and self._in_record:
            self.recognised -= 1
            return None
        self._in_record = False
        if first == "[":
            if found := _SINCE_BOOT.match(text):
                return self._since_boot(found, text)
            return self._stamped(text)
        if not first or text.isspace():
            self.recognised -= 1
            return None
        if first.isdecimal() and _RAW.match(text):
            return self._raw(text)
        if (first == "<" or first.islower()) and (prefix := _PREFIX.match(text)):
            recognised = self.recognised
            line = self._stamped(text[prefix.end() :])
            self.recognised = recognised
            trusted = prefix[2] in (None, "kern") and int(prefix[1] or 0) < 8
            return line if line is None or trusted else line._replace(trusted=False)
        return self._stamped(text)

    def _raw(self, text: str) -> LogLine:
        try:
            record = parse.parse(text.encode())
        except parse.MalformedRecord:
            return self._plain(text)
        self._in_record = True
        at_ns = self._boot_ns + record.boottime_us * 1000
        trusted = record.facility == parse.KERNEL
        return LogLine(at_ns, record.message, trusted=trusted, continues=record.continues)

    def _stamped(self, text: str) -> LogLine | None:
        try:
            if text.startswith("["):
                return self._in_brackets(text)
            return self._with_date(text)
        except (ValueError, OverflowError):  # looks like a time and is none: 31 February
            return self._plain(text)

    def _plain(self, text: str) -> LogLine:
        """A line of no known form; ``read_file`` has counted it."""
        self.recognised -= 1
        return LogLine(self._last_ns, text)

    def _in_brackets(self, text: str) -> LogLine:
        """The forms of dmesg. journalctl's short-monotonic is one too, with host and writer."""
        if found := _SINCE_BOOT.match(text):
            return self._since_boot(found, text)
        if found := _CTIME.match(text):
            month, day, clock, year = found.groups()
            return LogLine(stamps.calendar_ns(int(year), month, int(day), clock), text[found.end() :])
        if found := _MINUTE.match(text):
            at_ns = stamps.syslog_ns(found[1], int(found[2]), f"{found[3]}:00", self._written_ns)
            return LogLine(at_ns, text[found.end() :])
        if found := _SINCE_LAST.match(text):
            since_ns = int(found[1] or 0) * stamps.SECOND_NS + stamps.fraction_ns(found[2] or "")
            return LogLine(self._last_ns + since_ns, text[found.end() :])
        return self._plain(text)

    def _since_boot(self, found: re.Match[str], text: str) -> LogLine:
        seconds, fraction = found.groups()
        at_ns = self._boot_ns + int(seconds) * stamps.SECOND_NS + stamps.fraction_ns(fraction)
        host = _HOST_AND_KERNEL.match(text, found.end())
        return LogLine(at_ns, text[(host or found).end() :])

    def _with_date(self, text: str) -> LogLine | None:
        """The forms of syslog and journalctl, where a writer is named; dmesg's ISO form, where none is."""
        if found := _SYSLOG.match(text):
            month, day, clock, fraction = found.groups()
            at_ns = stamps.syslog_ns(month, int(day), clock, self._written_ns)
            return _of_kernel(at_ns + stamps.fraction_ns(fraction or ""), text[found.end() :])
        if found := _ISO.match(text):
            at_ns, rest = stamps.iso_ns(found), text[found.end() :]
            if "," not in found[0]:
                return _of_kernel(at_ns, rest)
            caller = _ISO_CALLER.match(rest)
            return LogLine(at_ns, rest if caller is None else rest[caller.end() :])
        if found := _UNIX.match(text):
            at_ns = int(found[1]) * stamps.SECOND_NS + stamps.fraction_ns(found[2])
            return _of_kernel(at_ns, text[found.end() :])
        return self._plain(text)


def _longer(line: LogLine, text: str) -> LogLine:
    """With one more line of its message."""
    if len(line.message) >= _LONGEST_MESSAGE:
        return line
    return line._replace(message=f"{line.message}\n{text}")


def _of_kernel(at_ns: int, text: str) -> LogLine | None:
    """After the time: ``host kernel: [  12.345] message``. Of another writer: None."""
    if (found := _KERNEL.match(text)) is None:
        return None
    message = text[found.end() :]
    if stamp := _SINCE_BOOT.match(message):
        message = message[stamp.end() :]
    return LogLine(at_ns, message)
