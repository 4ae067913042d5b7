"""The time of a log line: the month from its name, the year and zone from other lines. It reads no clock.

journalctl and dmesg write the month in the locale of the user. The names are those of glibc 2.36 (``abmon``
and ``ab_alt_mon`` of its locales) for languages in Latin, Greek, Cyrillic, Thai and Chinese letters. A number
in the name is the month, as in Chinese, Japanese, Korean, Vietnamese and Mongolian. Any other name is placed
by its day, because a log goes forward.

A time without a zone has the zone of other lines in the file, else UTC. Seconds since boot count from the
given boot, or from the boot that the file's dates imply; else the line has no date (``log.DATED_NS``). Each
guess is remarked once.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from fnmatch import translate
from typing import Final

from nodeagent.drivers.kmsg.parse import printable
from nodeagent.replay import log
from nodeagent.replay.log import DATED_NS, SECOND_NS, fraction_ns

_NAMES: Final = (
    "jan janv ene gen xan urt ian tammi jaan saus sty led sij oca yan ιαν јан яну янв січ сту қаң มค 一月 一",
    "feb febr fevr fev ots helmi veebr vas lut uno velj shk sub peb φεβ феб фев лют ақп กพ 二月 二",
    "mar mars marc mae mrt maalis marts kov bre ozu mac μαρ мар бер сак нау มีค 三月 三",
    "apr avril avr abr d’abr april api huhti bal kwi dub tra pri nis απρ апр кві кра сәу เมย 四月 四",
    "may mai maig mag mei maj touko geg kve svi mee μαι мај маи мая тра мам พค 五月 五",
    (
        "jun juin juny xun eka giu iun juni kesa juuni birz cze cen lip qer haz iyn hun ιουν јун юни июн"
        " чер чэр мау มิย 六月 六"
    ),
    (
        "jul juil jui xul uzt lug iul juli heina juuli liep lip cec srp kor tem iyl hul ιουλ јул юли июл"
        " лип ліп шіл กค 七月 七"
    ),
    "aug aout aou ago d’ag ag abu agu elo rugp sie srp avg kol gsh avq ogos αυγ авг сер жні там สค 八月 八",
    "sep sept set ira syys rugs wrz zar ruj szept sht eyl sen σεπ сеп сен вер қыр กย 九月 九",
    "oct okt d’oct out urr ott loka spal paz rij lis tet eki οκτ окт жов кас қаз ตค 十月 十",
    "nov aza marras lapkr lis stu nen kas noy nob νοε нов ное ноя лис ліс қар พย 十一月 十一",
    "dec dez dic des abe joulu dets gruod gru pro dhj ara dek dis δεκ дец дек гру сне жел ธค 十二月 十二",
)
"""Of January first. Without accents and points, in small letters."""

_NUMBER: Final = re.compile(r"(?<![0-9A-Za-z])(1[0-2]|0?[1-9])(?![0-9A-Za-z])")
_OTHER_BYTES: Final = re.compile(r"\\x[0-9a-f]{2}")
"""What was no UTF-8, as ``reading`` writes it: one letter in the encoding of another system."""


def _bare(word: str) -> str:
    """Without accents, points and capitals."""
    letters = unicodedata.normalize("NFKD", word).casefold()
    return "".join(char for char in letters if not unicodedata.combining(char)).replace(".", "")


_MONTHS_OF: Final[dict[str, frozenset[int]]] = {
    name: frozenset(month for month, names in enumerate(_NAMES, start=1) if name in map(_bare, names.split()))
    for names in _NAMES
    for name in map(_bare, names.split())
}


def months_of(words: str) -> frozenset[int]:
    """The months that the end of this text may mean, as ``Mär``, ``de març``, ``Thg 11``, ``11月``.

    Empty: none that is known.
    """
    for ending in _endings(words.split()):
        if found := _MONTHS_OF.get(_bare(ending)) or _with_other_bytes(ending):
            return found
    numbers = _NUMBER.findall(_OTHER_BYTES.sub("?", words))
    return frozenset({int(numbers[-1])}) if numbers else frozenset()


def _endings(words: list[str]) -> Iterator[str]:
    for count in range(1, min(len(words), 3) + 1):
        yield " ".join(words[-count:])


def _with_other_bytes(word: str) -> frozenset[int]:
    """``M\\xe4r`` fits one month in any encoding."""
    if not _OTHER_BYTES.search(word):
        return frozenset()
    fits = re.compile(translate(_OTHER_BYTES.sub("?", word).casefold().replace(".", ""))).match
    found = frozenset[int]().union(*(months for name, months in _MONTHS_OF.items() if fits(name)))
    return found if len(found) == 1 else frozenset()


class Months:
    """Of one file, last written at ``written_ns``. It learns which month each name is."""

    def __init__(self, written_ns: int) -> None:
        written = datetime.fromtimestamp(written_ns / 1e9, UTC)
        self._written = (written.month, written.day)
        self._last: tuple[int, int] | None = None
        self._certain: set[int] = set()
        self._guessed: dict[str, int] = {}

    def of(self, words: str, day: int) -> tuple[int, bool]:
        """The month, and whether the name alone decides it."""
        known = months_of(words)
        is_certain = len(known) == 1
        if is_certain:
            (month,) = known
            self._certain.add(month)
        elif words in self._guessed:
            month = self._guessed[words]
        else:
            # A month has one name in a language.
            month = self._guessed[words] = self._placed(day, known - self._certain or known)
        self._last = (month, day)
        return month, is_certain

    def _placed(self, day: int, possible: frozenset[int]) -> int:
        """The next from the line before, the last before the file's end; a day that went back is of another
        month. Where no month is known to be possible, each is: the name may be of another language.
        """
        if self._last is not None:
            (first, other_day), step = self._last, 1
            is_same = day >= other_day
        else:
            (first, other_day), step = self._written, -1
            is_same = day <= other_day
        start = first if is_same else first + step
        order = [(start - 1 + step * count) % 12 + 1 for count in range(12)]
        return next(month for month in order if not possible or month in possible)


_DATES_KEPT: Final = 4096
_UNTIMED_STEP_NS: Final = SECOND_NS

_WHOLE: Final = re.compile(
    r"(?:\S{1,100} +){0,2}?\S{0,100}?"
    r"([12][0-9]{3}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:[.,][0-9]{1,9})?"
    r"(?:([+-])([0-9]{2}):?([0-9]{2})\b)?"
)
"""Where a line has its own time: the dates in its message may be of anything."""

TimeGroups = tuple[str | None, ...]
"""The groups of a form for the time, the fraction of a second last."""

Remark = Callable[[str], None]


class TextClock:
    """Of one file, last written at ``written_ns``. ``boot_ns`` 0: unknown when the node booted."""

    def __init__(self, boot_ns: int, written_ns: int, remark: Remark) -> None:
        self.last_ns = boot_ns
        self.has_time = False
        """Whether any line had one."""
        self._boot_ns: int | None = boot_ns
        self._is_boot_given = boot_ns > 0
        self._written_ns = written_ns
        self._zone, self._zone_ns = "", 0
        self._near_ns: int | None = None
        self._months = Months(written_ns)
        self._dates: dict[TimeGroups, int] = {}
        self._remark = remark

    def see_ahead(self, text: str) -> None:
        """What the file's other lines have, for those that leave it out: a whole date, and its zone."""
        if (found := _WHOLE.match(text)) is None:
            return
        date, clock, sign, hours, minutes = found.groups()
        try:
            if self._near_ns is None:
                self._near_ns = log.utc_ns(f"{date}T{clock}")
            if sign and not self._zone:
                self._zone = f"{sign}{hours}:{minutes}"
                self._zone_ns = log.zone_ns(self._zone)
        except ValueError:  # looks like a date and is none
            return

    def since_boot(self, groups: TimeGroups) -> int:
        """Whole seconds, and the fraction."""
        seconds, fraction = groups
        return self.after_boot(int(seconds or 0) * SECOND_NS + fraction_ns(fraction))

    def after_boot(self, since_ns: int) -> int:
        self.has_time = True
        boot_ns = self._boot_ns
        if boot_ns is None:
            boot_ns = self._boot_ns = self.last_ns - since_ns
            self._remark("seconds since boot are set behind the dated line before them")
        return boot_ns + since_ns

    def boot(self) -> None:
        """What follows is of a boot after the lines so far."""
        if not self._is_boot_given or self.last_ns >= (self._boot_ns or 0) + SECOND_NS:
            self._boot_ns = self.last_ns

    def booted(self, at_ns: int, since: TimeGroups) -> None:
        """A dated line shows also how long ago the boot was."""
        if not self._is_boot_given and since[0] is not None:
            self._boot_ns = at_ns - int(since[0]) * SECOND_NS - fraction_ns(since[1])

    def since_last(self, groups: TimeGroups) -> int:
        """Since the line before: whole seconds, and the fraction; nothing where the line has its own date."""
        seconds, fraction = groups
        self.has_time = True
        return self.last_ns + int(seconds or 0) * SECOND_NS + fraction_ns(fraction)

    def untimed(self, groups: TimeGroups) -> int:
        """Seconds since boot if there are any; else no time."""
        if groups[0] is not None:
            return self.since_boot(groups)
        return self.next_untimed()

    def next_untimed(self) -> int:
        """With the line before. Where no line so far had a time, a second after it."""
        if self.has_time:
            return self.last_ns
        at_ns = self.last_ns
        self.last_ns += _UNTIMED_STEP_NS
        return at_ns

    def dated(self, groups: TimeGroups) -> int:
        """Date, time of day, Z or None, sign, hours and minutes of the zone, fraction."""
        key = groups[:-1]
        at_ns = self._dates.get(key)
        if at_ns is None:
            date, clock, is_utc, sign, hours, minutes = key
            assert date is not None
            assert clock is not None
            if sign:
                zone_ns = log.zone_ns(f"{sign}{hours}:{minutes or '00'}")
            else:
                zone_ns = 0 if is_utc else self._usual_zone_ns()
            at_ns = self._keep(key, log.utc_ns(f"{date.replace('/', '-')}T{clock}") - zone_ns)
        return at_ns + fraction_ns(groups[-1]) if groups[-1] else at_ns

    def dated_in_parts(self, groups: TimeGroups) -> int:
        """As ``dated``, and the fraction may have a point: ``646.254``."""
        return self.dated((*groups[:-1], groups[-1] and groups[-1].replace(".", "")))

    def of_month(self, groups: TimeGroups) -> int:
        """The text before the day, the day, the time of day, the year or None, one before the time or None,
        the fraction.
        """
        key = groups[:-1]
        at_ns = self._dates.get(key)
        if at_ns is None:
            words, day, clock, year, year_first = key
            assert words is not None
            assert day is not None
            assert clock is not None
            date_ns = self._calendar(words, int(day), clock, year or year_first)
            at_ns = self._keep(key, date_ns - self._usual_zone_ns())
        return at_ns + fraction_ns(groups[-1]) if groups[-1] else at_ns

    def to_the_minute(self, groups: TimeGroups) -> int:
        """The text before the day, the day, hours and minutes."""
        words, day, clock = groups
        return self.of_month((words, day, f"{clock}:00", None, None, None))

    def of_device(self, groups: TimeGroups) -> int:
        """Date, time of day, Z or None, seconds since boot, their fraction, the fraction in two parts."""
        date, clock, is_utc, up, up_part, fraction = groups
        if date is None:
            return self.untimed((up, up_part))
        return self.dated_in_parts((date, clock, is_utc, None, None, None, fraction))

    def unix(self, groups: TimeGroups) -> int:
        """Seconds since 1970, and the fraction."""
        seconds, fraction = groups
        return self._keep((), int(seconds or 0) * SECOND_NS) + fraction_ns(fraction)

    def _keep(self, key: TimeGroups, at_ns: int) -> int:
        """A log has many lines in each second."""
        if len(self._dates) >= _DATES_KEPT:
            self._dates.clear()
        if key:
            self._dates[key] = at_ns
        if not self._is_boot_given and self._boot_ns is not None and self._boot_ns < DATED_NS:
            self._boot_ns = None
        self.has_time = True
        return at_ns

    def _calendar(self, words: str, day: int, clock: str, year: str | None) -> int:
        month, is_certain = self._months.of(words, day)
        if not is_certain:
            self._remark(
                f'the month "{printable(words)}" could not be read: by its place in the file it is {month}'
            )
        leading = words.split(" ", 1)[0]
        if year is None and len(leading) == 4 and leading.isdecimal():
            year = leading
        if year is not None:
            return log.calendar_ns(int(year), month, day, clock)
        if self._near_ns is not None:
            return log.nearest_ns(month, day, clock, self._near_ns)
        self._remark("the lines have no year: each date is the last one before the file was written")
        return log.latest_ns(month, day, clock, self._written_ns)

    def _usual_zone_ns(self) -> int:
        if self._zone_ns:
            self._remark(f"times without a zone are taken as {self._zone}, as other lines have it")
        return self._zone_ns
