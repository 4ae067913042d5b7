"""Logs as JSON: ``journalctl -o json`` and its variants, ``dmesg -J``, and logs of container runtimes.

An object is one line, or begins and ends with a line of braces, as in json-pretty and ``dmesg -J``.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final

import msgspec

from nodeagent.replay import journal
from nodeagent.replay.log import GivenFile, LogLine
from nodeagent.replay.reading import MAX_LINE_BYTES, Reports
from nodeagent.replay.text_clock import TextClock

Object = dict[str, Any]
Numbered = tuple[int, Object]
"""With the number of the line where it begins."""

_DECODER: Final = msgspec.json.Decoder(Object)
_OPENS: Final = ("{", "},{")
_CLOSES: Final = ("}", "},", "},{")
_LEFT_OVER: Final = ("]", "]}", *_CLOSES)
"""The ends of the enclosing arrays."""

_MOST_SECONDS: Final = 1e12
_BEFORE: Final = ("\x1e", "data: ")
"""Of json-seq and json-sse."""

_KEYS_OF_JOURNAL: Final = re.compile(r'^\{.*"(?:__REALTIME_TIMESTAMP|MESSAGE)" ?:')
_KEYS_OF_CONTAINER: Final = re.compile(r'^\{"(?:log|stream|time)":.*"(?:log|stream|time)":')


def begins(first: str) -> bool:
    """Whether a file whose first line is this one, or begins so, is a log in JSON."""
    text = _bare(first)
    return text in _OPENS or text.startswith(('{"dmesg"', '{ "dmesg"')) or bool(_KEYS_OF_JOURNAL.match(text))


def is_of_container(first: str) -> bool:
    """Whether it is one that a container runtime keeps: lines in the keys log, stream and time."""
    return _KEYS_OF_CONTAINER.match(first) is not None


def read(blocks: Iterable[Sequence[str]], reports: Reports, given: GivenFile) -> Iterator[LogLine]:
    """What the kernel logged; what is wrong is reported by line and field."""
    clock = TextClock(given.boot_ns, given.written_ns, given.tally.remark)
    for number, data in _objects(blocks, reports):
        if isinstance(records := data.get("dmesg"), list):
            for record in records:
                yield from _of_dmesg(record, clock, partial(reports.add, number))
        elif journal.is_entry(data):
            line = journal.read_entry(data, partial(reports.add, number))
            if line is not None:
                yield line
            else:
                given.tally.others += 1
        else:
            yield from _of_dmesg(data, clock, partial(reports.add, number))


def by_line(blocks: Iterable[Sequence[str]], reports: Reports) -> Iterator[Numbered]:
    """The objects of a file that has one on a line; what is none is reported."""
    for number, line in enumerate(chain.from_iterable(blocks), start=1):
        if line.strip():
            yield from _decoded(number, line, reports)


def _objects(blocks: Iterable[Sequence[str]], reports: Reports) -> Iterator[Numbered]:
    """As ``by_line``, also those of many lines."""
    begun, gathered, size = 0, list[str](), 0
    number = 0
    for block in blocks:
        for line in block:
            number += 1
            text = _bare(line)
            if gathered:
                size += len(text)
                gathered.append(text)
                if text in _OPENS and text not in _CLOSES:
                    begun, gathered, size = number, [text], 0
                elif text in _CLOSES:
                    yield from _decoded(begun, "".join([*gathered[:-1], "}"]), reports)
                    begun, gathered, size = number, ["{"] if text in _OPENS else [], 0
                elif size > MAX_LINE_BYTES:
                    reports.add(begun, "", f"an object of more than {MAX_LINE_BYTES} bytes")
                    return
            elif text in _OPENS:
                begun, gathered, size = number, ["{"], 0
            elif text and text not in _LEFT_OVER:
                yield from _decoded(number, text, reports)
    if gathered:
        reports.add(begun, "", "the file ends within this object")


def from_container(blocks: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
    """As lines of CRI, which have the same fields; a damaged one stays as it is."""
    return (list(map(_as_cri, block)) for block in blocks)


def _bare(line: str) -> str:
    text = line.strip()
    for before in _BEFORE:
        text = text.removeprefix(before)
    return text


def _decoded(number: int, text: str, reports: Reports) -> Iterator[Numbered]:
    try:
        yield number, _DECODER.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        reports.add(number, "", f"must be one JSON object on a line: {error}")


def _of_dmesg(record: object, clock: TextClock, report: Callable[[str, str], None]) -> Iterator[LogLine]:
    """``{"fac": "kern", "pri": 3, "time": 12.345678, "msg": "text"}``; ``fac`` only with ``dmesg -x``."""
    match record:
        case {"msg": str(message), "fac": facility}:
            trusted = facility in ("kern", 0)
        case {"msg": str(message)}:
            trusted = True
        case _:
            report("", "must be an entry of the journal, or one of dmesg with msg and time")
            return
    match record:
        case {"time": float() | int() as seconds} if 0 <= seconds < _MOST_SECONDS:
            at_ns = clock.after_boot(round(seconds * 1_000_000) * 1000)
        case _:
            at_ns = clock.next_untimed()
    yield LogLine(at_ns, message, trusted)


def _as_cri(text: str) -> str:
    if not text.startswith("{"):
        return text
    try:
        match _DECODER.decode(text):
            case {"log": str(log), "time": str(at)}:
                return f"{at} stdout F {log.rstrip(chr(10))}"
    except (msgspec.DecodeError, RecursionError):
        pass
    return text
