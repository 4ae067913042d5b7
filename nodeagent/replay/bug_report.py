"""The kernel logs in what nvidia-bug-report.sh writes: a text of sections, each behind a line of underscores.

The script copies files of users too. So a title that is there twice, which the script never writes, is
nobody's: what stands below either is not trusted (``matching``).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Final

from nodeagent.replay.holdings import rank_of
from nodeagent.replay.kernel_text import KernelText
from nodeagent.replay.log import Given, Source

_BEGINNING: Final = b"Start of NVIDIA bug report log file"
_RULE: Final = re.compile(r"_{40,}")
_TITLE: Final = re.compile(r"(?:\*\*\* )?(/\S+|dmesg|journalctl -b -\d+):?")
_SEARCHED: Final = "Scanning kernel log files"
_PART: Final = re.compile(r"  (/\S+|journalctl[^=]*):")
"""Of the section of the lines that were searched for, one for each log."""

Run = tuple[str, list[str]]
"""Lines that follow each other, and the name of the log that they are of: "" for none."""


def begins(beginning: bytes) -> bool:
    """Whether a file that begins so is a bug report."""
    return _BEGINNING in beginning


def sources(blocks: Iterable[Sequence[str]], given: Given) -> Iterator[Source]:
    """The parts that are logs of the kernel, in their order. All other lines are others'."""
    for title, runs in groupby(_runs(blocks), key=itemgetter(0)):
        texts = (lines for _, lines in runs)
        rank = rank_of(title) if title else None
        if rank is None:
            given.tally.others += sum(bool(text.strip()) for lines in texts for text in lines)
        else:
            named = replace(given, name=f"{given.name}: {title}" if given.name else title)
            yield Source(KernelText(named).read(texts), named.name, rank)


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
