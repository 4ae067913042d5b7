"""Opens what is to be replayed and hands out its lines, bounded and without what only a screen needs. It
understands none of them.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from nodeagent.replay.packing import PACKING_ERRORS, Peeked, Readable, unpacked
from nodeagent.toml.problem import Problem, Problems

MAX_LINE_BYTES: Final = 1 << 20
_BLOCK_BYTES: Final = 1 << 18

Part = TypeVar("Part")

_CARRIAGE_RETURNS: Final = re.compile(rb"^\r+|\r+$", re.MULTILINE)
_SCREEN: Final = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[()*+][0-9A-Za-z]|[0-9=>A-Za-z])"
)
"""Colours, and what else is for a screen: ECMA-48, and the links of terminals."""

_SCREEN_AS_TEXT: Final = re.compile(rb"(?:\^\[|#033|\\(?:033|x1[bB]|e|E|u001[bB]))\[[0-9;]{0,20}[mK]")
"""The same, where less, rsyslog or a shell has made the character visible: ``^[[31m``, ``#033[31m``."""
_MADE_VISIBLE: Final = tuple(
    sign.encode() + b"["
    for sign in ("^[", "#033", r"\033", r"\x1b", r"\x1B", r"\e", r"\E", r"\u001b", r"\u001B")
)


class ReplayError(Exception):
    """The file cannot be replayed; str() is one line for each problem."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


@dataclass(slots=True)
class Reports:
    """Gathers what is wrong with one file, so that all of it is reported at once."""

    file: str
    problems: Problems

    def add(self, line: int | None, key: str, reason: str) -> None:
        self.problems.add(Problem(file=self.file, line=line, key=key, reason=reason))

    def raise_any(self) -> None:
        if self.problems:
            raise ReplayError(self.problems.found())


@contextmanager
def opened(path: Path, reports: Reports) -> Iterator[Peeked]:
    """The file's bytes, unpacked. Raises ReplayError where it cannot be read, also later while it is."""
    try:
        with path.open("rb") as file, unpacked(file) as text:
            yield text
    except PACKING_ERRORS as error:
        _report_unreadable(error, reports)


def readable(parts: Iterator[Part], reports: Reports) -> Iterator[Part]:
    """What is read of an opened file elsewhere than where it was opened. Raises ReplayError as that does."""
    try:
        yield from parts
    except PACKING_ERRORS as error:
        _report_unreadable(error, reports)


def _report_unreadable(error: BaseException, reports: Reports) -> None:
    reports.add(None, "", f"cannot be read: {getattr(error, 'strerror', None) or error}")
    reports.raise_any()


def lines(file: Readable, too_long: Callable[[int], None]) -> Iterator[list[str]]:
    """The lines of one block after the other, each ended by a newline or by the file's end.

    What is no UTF-8 becomes ``\\xNN``. A line beyond MAX_LINE_BYTES is told by its number, and is empty here.
    """
    number, rest = 1, b""
    while block := file.read(_BLOCK_BYTES):
        whole, newline, tail = block.rpartition(b"\n")
        if newline:
            texts = _texts(rest + whole, number, too_long)
            number += len(texts)
            yield texts
            rest = tail
        else:
            # Of a line without an end no more is kept than shows that it is too long.
            rest = (rest + tail)[: MAX_LINE_BYTES + 1]
    if rest:
        yield _texts(rest, number, too_long)


def strictly(reports: Reports) -> Callable[[int], None]:
    """A line that is too long makes the file wrong."""
    return lambda number: reports.add(number, "", f"longer than {MAX_LINE_BYTES} bytes")


def without_screen(text: bytes) -> bytes:
    """Without colours and their like."""
    if b"\x1b" in text:
        text = _SCREEN.sub(b"", text)
    return _SCREEN_AS_TEXT.sub(b"", text) if any(sign in text for sign in _MADE_VISIBLE) else text


def _texts(block: bytes, first_number: int, too_long: Callable[[int], None]) -> list[str]:
    """Only the first line can be longer than a block, and so than a line may be."""
    first_bytes = block.find(b"\n") if b"\n" in block else len(block)
    if first_bytes > MAX_LINE_BYTES:
        too_long(first_number)
        block = block[first_bytes:]
    if b"\r" in block:
        block = _CARRIAGE_RETURNS.sub(b"", block)
    block = without_screen(block)
    if b"\0" in block:  # what a crash leaves where the disk had no text yet
        block = block.replace(b"\0", b"")
    return block.decode("utf-8", "backslashreplace").split("\n")
