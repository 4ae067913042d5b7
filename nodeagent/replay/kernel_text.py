"""Text of a kernel log, line by line: the time, the message and the writer of each line.

The forms are rows (``text_forms``), and so are the prefixes (``text_prefixes``). Parsing cannot fail: a line
in no known form is a message that counts as not understood.

A form may not show the writer of a line (no facility), nor which lines continue another. dmesg and journalctl
put the further lines of a message below its first line, with the same indent. Such a line is never parsed as
a line of its own, because any program may have chosen its text.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from nodeagent.drivers.kmsg import parse
from nodeagent.replay.log import UNKNOWN_WRITER, GivenFile, LogLine
from nodeagent.replay.reading import Readable, lines
from nodeagent.replay.text_clock import TextClock
from nodeagent.replay.text_forms import FORMS, OF_THE_KERNEL, RECORD, Found, LogForm, beginning_with, kind_of
from nodeagent.replay.text_prefixes import (
    CONTAINER,
    INDENT,
    OF_WRITER,
    PREFIXES,
    PRIORITIES,
    RULE,
    Prefix,
    Stripped,
    behind_bare_name,
    is_around_lines,
    is_host_title,
    is_mark,
    is_of_kernel,
    names_writer,
    unclosed,
    undressed,
)

PLAIN: Final = "plain"
"""No form: each line is a message, without time."""

_RELATIVE: Final = (TextClock.since_boot, TextClock.since_last, TextClock.untimed)
"""A form that a tool or a writer adds has a date, and is preferred to these."""

_BOOTS: Final = ("Linux version ", "Booting Linux on ")
_TIME_IN: Final = re.compile(r"[0-9]:[0-9]{2}|[0-9][.,][0-9]+ ?[\]> ]|kernel|[0-9],[^;]*;")
"""A line without it is in no form."""

_CLOCK_IN: Final = re.compile(r"[0-9]:[0-9]{2}")

_MOST_PREFIXES: Final = 5
_LONGEST_MESSAGE: Final = 8192
"""No more is kept of the further lines of one message; the kernel's longest record is as long."""

_HOSTS_KEPT: Final = 1000
_HOSTS_SHOWN: Final = 3


class KernelText:
    """Reads the lines of one file in order."""

    def __init__(self, given: GivenFile) -> None:
        self._given = given
        self._tally = given.tally
        self._clock = TextClock(given.boot_ns, given.written_ns, given.tally.remark)
        self._forms = beginning_with(tuple(form for form in FORMS if given.only in (None, form.name)))
        self._form: LogForm | None = None
        self._path: tuple[Prefix, ...] = ()
        self._before: Found | None = None
        self._in_record = False
        self._names_writers = False
        self._sees_writers = False
        self._is_title_next = False
        self._is_boot_known = given.boot_ns > 0
        self._host: str | None = None
        self._hosts: dict[str, None] = {}

    def read_file(self, file: Readable) -> Iterator[LogLine]:
        """Leaves out what the kernel did not log: another program's line, a record's properties, nothing."""
        return self.read(lines(file, self.too_long))

    def too_long(self, number: int) -> None:
        """A line that is not read."""
        self._tally.leave(self._given.name, number)

    def read(self, blocks: Iterable[Sequence[str]]) -> Iterator[LogLine]:
        """As ``read_file``, of the lines of one block after the other."""
        begun: LogLine | None = None
        form: LogForm | None = None
        number = 0
        for block in blocks:
            if not number:
                for text in block:
                    self._clock.see_ahead(text)
            for text in block:
                number += 1
                try:
                    if form is not None and (found := form.regex.match(text)) is not None:
                        line = self._understood(form, found)
                    elif self._path and (behind := self._as_before(text)) is not None:
                        line = self._understood(*behind)
                    elif (further := self._further(text)) is not None:
                        begun = self._longer(begun, further)
                        continue
                    else:
                        line = self._read(text, number)
                        form = None if self._path else self._form
                except (ValueError, OverflowError):  # looks like a time and is none: 31 February
                    line = self._unread(text, number)
                if begun is not None:
                    yield begun
                begun = line
        if begun is not None:
            yield begun
        self._close(number)

    # --- where a line begins --------------------------------------------------------------------------------

    def _as_before(self, text: str) -> tuple[LogForm, Found, Stripped] | None:
        """In the form of the line before, behind the same prefixes."""
        at, stripped = 0, []
        for prefix in self._path:
            taken = prefix.regex.match(text, at)
            if taken is None or (prefix.name == INDENT and self._is_too_deep(prefix, taken)):
                return None
            at = taken.end()
            stripped.append((prefix, taken))
        assert self._form is not None, "it has a path"
        found = self._form.regex.match(text, at)
        return None if found is None else (self._form, found, stripped)

    def _further(self, text: str) -> str | None:
        """The rest of the line before, where it is set below the message of that."""
        if self._in_record and text.startswith(" "):
            return ""
        if (before := self._before) is None or (end := before.end()) > len(text):
            return None
        lead = zip(text, before.string[: before.start()], strict=False)
        same = next((at for at, (one, other) in enumerate(lead) if one != other), before.start())
        return None if text[same:end].strip(" ") or not text[same:end] else text[end:]

    def _is_too_deep(self, prefix: Prefix, taken: Found) -> bool:
        """Set as far to the right as the rest of a message, if not quite below it."""
        if prefix.name != INDENT or self._before is None:
            return False
        start, end = self._before.span()
        usual = self._before.string[:start]
        spaces = len(taken[0]) - len(taken[0].lstrip(" "))
        return spaces - (len(usual) - len(usual.rstrip(" "))) >= end - start

    def _search(self, text: str) -> tuple[LogForm, Found, Stripped] | None:
        """The outermost form, and what is before it: the fewest prefixes."""
        places: dict[int, Stripped] = {0: ()}
        tried = set[int]()
        for _ in range(_MOST_PREFIXES + 1):
            tried |= places.keys()
            for at, stripped in places.items():
                if (found := self._form_at(text, at, stripped)) is not None:
                    return *found, stripped
            places = {
                taken.end(): (*stripped, (prefix, taken))
                for at, stripped in places.items()
                for prefix in reversed(PREFIXES)  # where two end alike, the first counts
                if (taken := prefix.regex.match(text, at)) is not None
                and taken.end() not in tried
                and taken.end() < len(text)
                and not self._is_too_deep(prefix, taken)
            }
        return None

    def _form_at(self, text: str, at: int, stripped: Stripped) -> tuple[LogForm, Found] | None:
        for form in self._forms[kind_of(text[at])]:
            found = form.regex.match(text, at)
            if found is not None and not (
                form.read == TextClock.untimed and _hides_a_time(text, at, stripped)
            ):
                return form, found
        return None

    # --- its content ---------------------------------------------------------------------------------------

    def _longer(self, begun: LogLine | None, further: str) -> LogLine | None:
        """With one more line of its message. None: of another writer's."""
        if begun is None or self._in_record:
            self._tally.others += 1
            return begun
        self._tally.kernel += 1
        if len(begun.message) >= _LONGEST_MESSAGE:
            return begun
        return begun._replace(message=f"{begun.message}\n{further}")

    def _read(self, text: str, number: int) -> LogLine | None:
        """None for what is no line of the kernel. Raises ValueError for a day that never was."""
        self._in_record = False
        if not text or text.isspace():
            return None
        if self._given.only == PLAIN:
            return LogLine(self._clock.next_untimed(), text)
        if not _TIME_IN.search(text) or (found := self._search(text)) is None:
            return self._unread(text, number)
        form, match, stripped = found
        self._form, self._path = form, tuple(prefix for prefix, _ in stripped)
        return self._understood(form, match, stripped)

    def _understood(self, form: LogForm, found: Found, stripped: Stripped = ()) -> LogLine | None:
        """None for a line of another writer. Raises ValueError for a day that never was."""
        self._before = found
        if form is RECORD:
            line = self._record(found)
        else:
            text, clock = found.string, self._clock
            at_ns = form.read(clock, found.group(*form.time))
            if (
                at_ns < clock.last_ns
                and form.read is TextClock.since_boot
                and text.startswith(_BOOTS, found.end())
            ):
                clock.boot()
                at_ns = form.read(clock, found.group(*form.time))
            clock.last_ns = at_ns
            if form.kernel:
                self._names_writers = True
                self._sees_writers |= found.start(form.kernel) >= 0 or names_writer(text, found.end())
            if form.wraps and (inner := self._inside(form, found)) is not None:
                return self._of_date(at_ns, inner[0], self._understood(*inner))
            if form.kernel and found.start(form.kernel) < 0:
                return self._of_unknown_writer(at_ns, text, found.end())
            if form.host and not stripped:
                self._see_host(found[form.host])
            if form.up and not self._is_boot_known and found[form.up[0]]:
                self._is_boot_known = True
                clock.booted(at_ns, found.group(*form.up))
            trusted = not form.facility or found[form.facility] in OF_THE_KERNEL
            line = LogLine(at_ns, text[found.end() :], trusted)
        return self._by_its_prefixes(form, line, stripped) if stripped else line

    def _of_unknown_writer(self, at_ns: int, text: str, at: int) -> LogLine | None:
        """After a date, where no writer is named. In a log whose writers were cut off, the kernel's message
        follows at once.
        """
        at = behind_bare_name(text, at)
        if self._sees_writers or not is_of_kernel(text, at):
            self._tally.others += 1
            return None
        return LogLine(at_ns, text[at:], unread=UNKNOWN_WRITER)

    def _record(self, found: Found) -> LogLine:
        """Raises ValueError for what is no record."""
        record = parse.parse(found.string[found.start() :].encode())
        self._in_record = True
        self._clock.last_ns = at_ns = self._clock.after_boot(record.boottime_us * 1000)
        trusted = record.facility == parse.KERNEL
        return LogLine(at_ns, record.message, trusted, record.continues)

    def _inside(self, form: LogForm, outer: Found) -> tuple[LogForm, Found, Stripped] | None:
        """A line of the kernel log that a tool wrote behind a date: where no writer is named, but one of the
        forms in which all is the kernel's follows at once.
        """
        text, at = outer.string, outer.end()
        if form.kernel and (outer.start(form.kernel) >= 0 or not text.startswith(OF_WRITER, at)):
            return None
        places: dict[int, Stripped] = {at: ()}
        for prefix in PRIORITIES:
            if (taken := prefix.regex.match(text, at)) is not None:
                places[taken.end()] = ((prefix, taken),)
        for place, stripped in places.items():
            if place < len(text) and (found := self._form_at(text, place, stripped)) is not None:
                return None if form.kernel and found[0].kernel else (*found, stripped)
        return None

    def _by_its_prefixes(self, form: LogForm, line: LogLine | None, stripped: Stripped) -> LogLine | None:
        """With the values of its prefixes."""
        for prefix, taken in stripped:
            if prefix.host:
                self._see_host(taken[prefix.host])
            elif prefix.time:
                line = self._of_date(self._clock.dated(taken.group(*prefix.time)), form, line)
            elif line is not None and not prefix.is_by_kernel(taken):
                line = line._replace(trusted=False)
        if line is None:
            return None
        message = unclosed(line.message, (taken[0] for _, taken in stripped))
        return line if message is line.message else line._replace(message=message)

    def _of_date(self, at_ns: int, form: LogForm, line: LogLine | None) -> LogLine | None:
        if line is None or form.read not in _RELATIVE:
            return line
        self._clock.last_ns = at_ns
        return line._replace(at_ns=at_ns)

    def _unread(self, text: str, number: int) -> LogLine | None:
        """Not trusted in a file in whose forms the kernel's lines are marked: this one is not."""
        is_rule = text.startswith(RULE)
        is_title, self._is_title_next = self._is_title_next and not is_rule and is_host_title(text), is_rule
        if is_title:
            self._see_host(text)
        if is_title or is_mark(text) or is_around_lines(text):
            self._tally.others += 1
            return None
        if (taken := CONTAINER.regex.match(text)) is not None:
            self._clock.last_ns = at_ns = self._clock.dated(taken.group(*CONTAINER.time))
            return LogLine(at_ns, text[taken.end() :], not self._names_writers, unread=UNKNOWN_WRITER)
        at_ns = self._clock.next_untimed()
        for prefix in PRIORITIES:
            if (taken := prefix.regex.match(text)) is not None:
                return LogLine(at_ns, text[taken.end() :], prefix.is_by_kernel(taken))
        return LogLine(at_ns, undressed(text), not self._names_writers, unread=number)

    def _see_host(self, host: str | None) -> None:
        if host != self._host and host and len(self._hosts) < _HOSTS_KEPT:
            self._host = host
            self._hosts[host] = None

    def _close(self, count: int) -> None:
        if count:
            self._tally.has_times &= self._clock.has_time
        if len(self._hosts) > 1:
            shown = ", ".join(list(self._hosts)[:_HOSTS_SHOWN])
            more = " and others" if len(self._hosts) > _HOSTS_SHOWN else ""
            many = f"lines of {len(self._hosts)} hosts are judged as those of one node"
            self._tally.remark(f"{many}: {shown}{more}")


def _hides_a_time(text: str, at: int, stripped: Stripped) -> bool:
    """Whether the text before this place contains a time that is not understood."""
    return bool(_CLOCK_IN.search(text, 0, at)) and not any(prefix.time for prefix, _ in stripped)
