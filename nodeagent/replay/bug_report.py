"""The kernel logs in what nvidia-bug-report.sh writes: a text of sections, each behind a line of underscores.

The script copies files of users too. So a title that is there twice, which the script never writes, is
nobody's: what stands below either is not trusted (``matching``).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, groupby
from operator import itemgetter
from typing import Final

from nodeagent.drivers.kmsg.parse import printable
from nodeagent.replay.holdings import rank_of
from nodeagent.replay.kernel_text import KernelText
from nodeagent.replay.log import Given, Source
from nodeagent.replay.stamps import calendar_ns
from nodeagent.replay.text.months import months_of

_BEGINNING: Final = b"Start of NVIDIA bug report log file"
_RULE: Final = re.compile(r"_{40,}")
_TITLE: Final = re.compile(r"(?:\*\*\* )?(/\S+|dmesg|journalctl -b -\d+):?")
_SEARCHED: Final = "Scanning kernel log files"
_PART: Final = re.compile(r"  (/\S+|journalctl[^=]*):")
"""Of the section of the lines that were searched for, one for each log."""

_DATE: Final = "Date: "
_DAY: Final = re.compile(r"(?<![\d:.+-])[0-3]?\d(?![\d:])")
_WORD: Final = re.compile(r"[^\W\d_]+")
_YEAR: Final = re.compile(r"(?<!\d)20\d\d(?!\d)")

Run = tuple[str, list[str]]
"""Lines that follow each other, and the name of the log that they are of: "" for none."""


def begins(beginning: bytes) -> bool:
    """Whether a file that begins so is a bug report."""
    return _BEGINNING in beginning


def sources(blocks: Iterable[Sequence[str]], given: Given) -> Iterator[Source]:
    """The parts that are logs of the kernel, in their order. All other lines are others'."""
    written_ns = given.written_ns
    for title, runs in groupby(_runs(blocks), key=itemgetter(0)):
        texts = (lines for _, lines in runs)
        rank = rank_of(title) if title else None
        if rank is None:
            for text in chain.from_iterable(texts):
                given.tally.others += bool(text.strip())
                if text.startswith(_DATE):
                    written_ns = _end_of(text.removeprefix(_DATE)) or written_ns
        else:
            name = printable(f"{given.name}: {title}" if given.name else title)
            named = replace(given, name=name, written_ns=min(given.written_ns, written_ns))
            given.tally.parts[named.name] = None
            yield Source(KernelText(named).read(texts), named.name, rank)


def _end_of(date: str) -> int | None:
    """The end of the day of a date as the C library writes it, in any language; of its year, where only that
    is read; None where nothing is.

    ``Thu Oct 27 08:50:11 PM -03 2022``, ``mar 13 set 2011, 23.11.55``: the month stands behind the weekday.
    """
    if (year := _YEAR.search(date)) is None:
        return None
    day = _DAY.search(date)
    said = [months for word in _WORD.findall(date) if len(months := months_of(word)) == 1]
    if day is not None and said:
        (month,) = said[-1]
        with suppress(ValueError):
            return calendar_ns(int(year[0]), month, int(day[0]), "23:59:59")
    return calendar_ns(int(year[0]), 12, 31, "23:59:59")


def _runs(blocks: Iterable[Sequence[str]]) -> Iterator[Run]:
    log, is_title_next, is_searched = "", False, False
    for block in blocks:
        run: list[str] = []
        for text in block:
            before = log
            if _RULE.fullmatch(text):
                log, is_title_next, is_searched = "", True, False
            elif is_title_next and text.strip():
                title = _TITLE.fullmatch(text)
                log = title[1] if title else ""
                is_title_next, is_searched = False, text.startswith(_SEARCHED)
            elif is_searched and (part := _PART.fullmatch(text)):
                log = part[1]
            else:
                run.append(text)
                continue
            yield before, run
            yield "", [text]
            run = []
        yield log, run
