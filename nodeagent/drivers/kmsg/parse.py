r"""One record of ``/dev/kmsg``, taken apart.

The form is the kernel's (Documentation/ABI/testing/dev-kmsg)::

    6,1234,5678901,-;message with \x09 escapes
     KEY=value        <- zero or more continuation lines, each after one space

Number one is facility * 8 + priority, then the sequence number, then microseconds since boot, then
flags, then whatever a later kernel adds. Flag ``c`` (in kernels before 4.9 also ``+``) marks the
continuation of a line that another came between. Pure: no descriptor, no clock.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

KERNEL: Final = 0
"""The facility of lines the kernel itself wrote; the kernel gives no other writer this number."""

_ESCAPE: Final = re.compile(rb"\\x([0-9a-f]{2})")
_CONTROLS: Final = {number: f"\\x{number:02x}" for number in (*range(32), 127)}
_MAX_CONTINUATIONS: Final = 16
_CONTINUES: Final = (b"c", b"+")
_MAX_NUMBER: Final = 2**52
"""Microseconds of 140 years; nanoseconds made of them still fit 63 bits."""


class MalformedRecord(ValueError):
    """Not in the kernel's form; the text shows its beginning."""


@dataclass(frozen=True, slots=True)
class Record:
    """``boottime_us`` is the kernel's own stamp, microseconds since boot; ``message`` is unescaped.

    ``continues``: it is written as the rest of another line, so its beginning is no message's.
    """

    seq: int
    facility: int
    priority: int
    boottime_us: int
    message: str
    continuation: Mapping[str, str]
    continues: bool = False


def parse(raw: bytes) -> Record:
    """Take one record apart. Raises ``MalformedRecord``."""
    head, separator, body = raw.partition(b";")
    fields = head.split(b",", 4)
    if not separator or len(fields) < 3:
        raise MalformedRecord(f"no 'priority,seq,stamp,flags;' at the start of {raw[:80]!r}")
    try:
        prefix, seq, boottime_us = int(fields[0]), int(fields[1]), int(fields[2])
    except ValueError as error:
        raise MalformedRecord(f"not a number at the start of {raw[:80]!r}") from error
    if not all(0 <= number <= _MAX_NUMBER for number in (prefix, seq, boottime_us)):
        raise MalformedRecord(f"a number out of range at the start of {raw[:80]!r}")
    message, _, rest = body.partition(b"\n")
    return Record(
        seq=seq,
        facility=prefix >> 3,
        priority=prefix & 7,
        boottime_us=boottime_us,
        message=unescape(message),
        continuation=_continuation(rest) if rest else {},
        continues=len(fields) > 3 and fields[3] in _CONTINUES,
    )


def unescape(text: bytes) -> str:
    r"""Undo the kernel's ``\xNN``. Bytes that are no UTF-8 stay in that form, so nothing is lost.

    >>> unescape(rb"tab\x09, caf\xc3\xa9, stray \xff")
    'tab\t, café, stray \\xff'
    """
    if b"\\" in text:
        text = _ESCAPE.sub(lambda found: bytes((int(found[1], 16),)), text)
    return text.decode("utf-8", "backslashreplace")


def printable(text: str) -> str:
    """Control characters back in the kernel's escaped form: fit for a terminal and for one line."""
    return text if text.isprintable() else text.translate(_CONTROLS)


def split(chunk: bytes) -> Iterator[bytes]:
    """The records in what one read returned: one from the device itself, any number from a FIFO."""
    start = 0
    while start < len(chunk):
        end = chunk.find(b"\n", start)
        while end >= 0 and chunk[end + 1 : end + 2] == b" ":
            end = chunk.find(b"\n", end + 1)
        stop = len(chunk) if end < 0 else end
        yield chunk[start:stop]
        start = stop + 1


def _continuation(rest: bytes) -> dict[str, str]:
    pairs = {}
    for line in rest.split(b"\n")[:_MAX_CONTINUATIONS]:
        key, separator, value = line.strip().partition(b"=")
        if separator:
            pairs[unescape(key)] = unescape(value)
    return pairs
