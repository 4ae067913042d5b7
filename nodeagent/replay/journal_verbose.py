"""The journal's verbose form (``journalctl -o verbose``): a line with the time, then the fields, set inwards.

A field's further lines are set below its value, further inwards than any name of a field: so what a program
logs is no field of its entry. The entry's time is read of its cursor, which has no zone.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from nodeagent.replay import journal_text
from nodeagent.replay.log import Given, LogLine
from nodeagent.replay.reading import Reports

_ENTRY: Final = re.compile(
    r"(?:\S+ )?\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\S* \S+ \[s=[0-9a-f]+;.*;t=([0-9a-f]{1,15});"
)
_FIELD: Final = re.compile(r"    ([A-Z_][A-Z0-9_]{0,63})=(.*)")
_MARGIN: Final = len("    =")
_LONGEST_VALUE: Final = 8192


def begins(first: str) -> bool:
    """Whether a file whose first line is this one is verbose."""
    return _ENTRY.match(first) is not None


def read(blocks: Iterable[Sequence[str]], reports: Reports, given: Given) -> Iterator[LogLine]:
    """What the kernel logged. An entry that lacks what each has is reported by the line where it begins."""
    entry: dict[str, str] = {}
    name, begun, number = "", 0, 0
    for block in blocks:
        for text in block:
            number += 1
            if head := _ENTRY.match(text):
                yield from _line_of(entry, begun, reports, given)
                entry, name, begun = {"__REALTIME_TIMESTAMP": str(int(head[1], 16))}, "", number
            elif field := _FIELD.match(text):
                name = field[1]
                entry[name] = field[2]
            elif name and text.startswith(margin := " " * (len(name) + _MARGIN)):
                entry[name] = f"{entry[name]}\n{text.removeprefix(margin)}"[:_LONGEST_VALUE]
    yield from _line_of(entry, begun, reports, given)


def _line_of(entry: dict[str, str], begun: int, reports: Reports, given: Given) -> Iterator[LogLine]:
    if not entry:
        return
    line = journal_text.read(entry, lambda field, reason: reports.add(begun, field, reason))
    if line is None:
        given.tally.others += 1
    else:
        yield line
