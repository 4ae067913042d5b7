"""Which month a word means, in the languages that programs write the time in. It reads no clock.

journalctl and dmesg write the month as the C library has it in the locale of who called them. The names are
those of glibc 2.36 (``abmon`` and ``ab_alt_mon`` of its locales) for the languages in Latin, Greek, Cyrillic,
Thai and Chinese letters; a number within the word is the month's, as in Chinese, Japanese, Korean,
Vietnamese and Mongolian. Any other word is placed by its day, as a log goes forward.
"""

import re
import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime
from fnmatch import translate
from typing import Final

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
    """The months that the last of these words may mean, as ``Mär``, ``de març``, ``Thg 11``, ``11月``.

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
    """Of one file, last written at ``written_ns``. It learns which month each word is."""

    def __init__(self, written_ns: int) -> None:
        written = datetime.fromtimestamp(written_ns / 1e9, UTC)
        self._written = (written.month, written.day)
        self._last: tuple[int, int] | None = None
        self._certain: set[int] = set()
        self._guessed: dict[str, int] = {}

    def of(self, words: str, day: int) -> tuple[int, bool]:
        """The month, and whether the word alone says so."""
        known = months_of(words)
        is_certain = len(known) == 1
        if is_certain:
            (month,) = known
            self._certain.add(month)
        elif words in self._guessed:
            month = self._guessed[words]
        else:
            # A month has one word in a language.
            month = self._guessed[words] = self._placed(day, known - self._certain or known)
        self._last = (month, day)
        return month, is_certain

    def _placed(self, day: int, possible: frozenset[int]) -> int:
        """The next from the line before, the last before the file's end; a day that went back is of another
        month. Where no month is known to be possible, each is: the word may be of another language.
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
