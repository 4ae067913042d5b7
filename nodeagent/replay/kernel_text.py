"""One line of a kernel log in any of the forms in which people keep it: its time, its message, who wrote it.

dmesg plain, with seconds since boot, -T, -x, -r, --time-format iso, delta, reltime; syslog; journalctl short
and its variants; raw records of /dev/kmsg. Parses only, and cannot fail: a line without a time that it knows
is all message.
"""

import re
from dataclasses import dataclass
from typing import Final

from nodeagent.drivers.kmsg import parse
from nodeagent.replay import stamps

_RAW: Final = re.compile(r"\d+,\d+,\d+,[^;]*;")
_PREFIX: Final = re.compile(
    r"<(\d{1,3})>"
    r"|(kern|user|mail|daemon|auth|syslog|lpr|news|uucp|cron|authpriv|ftp|local[0-7]) *"
    r":(?:emerg|alert|crit|err|warn|notice|info|debug) *: "
)
_SINCE_BOOT: Final = re.compile(r"\[ *(\d{1,12})\.(\d{1,9})(?: <[ \d.]+>)?\](?:\[ *[TC]\d+\])? ?")
_CTIME: Final = re.compile(r"\[[A-Z][a-z]{2} ([A-Z][a-z]{2}) +(\d{1,2}) (\d\d:\d\d:\d\d) (\d{4})[^]]*\] ?")
_MINUTE: Final = re.compile(r"\[([A-Z][a-z]{2}) ?(\d{1,2}) (\d\d:\d\d)\] ?")
_SINCE_LAST: Final = re.compile(r"\[ *\+(\d{1,9})\.(\d{1,9})\] ?|\[<[ \d.]+>\] ?")
_ISO: Final = re.compile(
    r"(?:[A-Z][a-z]{2} )?(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)"
    r"(?:[.,](\d{1,9}))?(?:(Z)|([+-])(\d\d):?(\d\d)| [A-Z]{3,4})? "
)
_SYSLOG: Final = re.compile(r"([A-Z][a-z]{2}) +(\d{1,2}) (\d\d:\d\d:\d\d)(?:\.(\d{1,9}))? ")
_UNIX: Final = re.compile(r"(\d{9,11})\.(\d{6}) ")
_HOST_AND_KERNEL: Final = re.compile(r"[\w.-]+ kernel(?:\[\d+\])?: ")
_KERNEL: Final = re.compile(r"(?:[\w.:-]+ ){0,2}kernel(?:\[\d+\])?: ")


@dataclass(frozen=True, slots=True)
class LogLine:
    """``at_ns`` None: the line has no time of its own. ``trusted`` false: user space wrote it."""

    at_ns: int | None
    message: str
    trusted: bool = True


class KernelText:
    """Reads lines in order. Seconds since boot begin at ``boot_ns``; the file ends at ``written_ns``."""

    def __init__(self, boot_ns: int, written_ns: int) -> None:
        self._boot_ns = boot_ns
        self._written_ns = written_ns
        self._last_ns: int | None = None

    def read(self, text: str) -> LogLine | None:
        """None for what the kernel did not log: another program's line, a continuation, nothing."""
        if not text.strip():
            return None
        if _RAW.match(text):
            return self._raw(text)
        trusted = True
        if prefix := _PREFIX.match(text):
            trusted = prefix[2] in (None, "kern") and int(prefix[1] or 0) < 8
            text = text[prefix.end() :]
        line = self._stamped(text)
        if line is not None and line.at_ns is not None:
            self._last_ns = line.at_ns
        if line is None or trusted:
            return line
        return LogLine(line.at_ns, line.message, trusted=False)

    def _raw(self, text: str) -> LogLine | None:
        try:
            record = parse.parse(text.encode())
        except parse.MalformedRecord:
            return LogLine(None, text)
        at_ns = self._boot_ns + record.boottime_us * 1000
        return LogLine(at_ns, record.message, trusted=record.facility == parse.KERNEL)

    def _stamped(self, text: str) -> LogLine | None:
        try:
            return self._in_brackets(text) or self._with_date(text)
        except (ValueError, OverflowError):  # looks like a time and is none: 31 February
            return LogLine(None, text)

    def _in_brackets(self, text: str) -> LogLine | None:
        """The forms of dmesg; short-monotonic of journalctl has host and writer after it."""
        if found := _SINCE_BOOT.match(text):
            at_ns = self._boot_ns + int(found[1]) * stamps.SECOND_NS + stamps.fraction_ns(found[2])
            rest = text[found.end() :]
            if host := _HOST_AND_KERNEL.match(rest):
                rest = rest[host.end() :]
            return LogLine(at_ns, rest)
        if found := _CTIME.match(text):
            return LogLine(
                stamps.calendar_ns(int(found[4]), found[1], int(found[2]), found[3]), text[found.end() :]
            )
        if found := _MINUTE.match(text):
            at_ns = stamps.syslog_ns(found[1], int(found[2]), f"{found[3]}:00", "", self._written_ns)
            return LogLine(at_ns, text[found.end() :])
        if found := _SINCE_LAST.match(text):
            since_ns = int(found[1] or 0) * stamps.SECOND_NS + stamps.fraction_ns(found[2] or "")
            last_ns = self._boot_ns if self._last_ns is None else self._last_ns
            return LogLine(last_ns + since_ns, text[found.end() :])
        return None

    def _with_date(self, text: str) -> LogLine | None:
        """The forms of syslog and journalctl, where a writer is named; dmesg's ISO form, where none is."""
        if found := _ISO.match(text):
            at_ns, rest = stamps.iso_ns(found), text[found.end() :]
            return LogLine(at_ns, rest) if "," in found[0] else _of_kernel(at_ns, rest)
        if found := _SYSLOG.match(text):
            clock, fraction = found[3], found[4] or ""
            at_ns = stamps.syslog_ns(found[1], int(found[2]), clock, fraction, self._written_ns)
            return _of_kernel(at_ns, text[found.end() :])
        if found := _UNIX.match(text):
            at_ns = int(found[1]) * stamps.SECOND_NS + stamps.fraction_ns(found[2])
            return _of_kernel(at_ns, text[found.end() :])
        return LogLine(None, text)


def _of_kernel(at_ns: int, text: str) -> LogLine | None:
    """After the time: ``host kernel: [  12.345] message``. Of another writer: None."""
    if (found := _KERNEL.match(text)) is None:
        return None
    message = text[found.end() :]
    if stamp := _SINCE_BOOT.match(message):
        message = message[stamp.end() :]
    return LogLine(at_ns, message)
