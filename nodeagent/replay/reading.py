"""Opens what is to be replayed and hands out its lines, bounded. It understands none of them."""

import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from nodeagent.toml.problem import Problem, Problems

MAX_LINE_BYTES: Final = 1 << 20
_BLOCK_BYTES: Final = 1 << 18
_GZIP: Final = b"\x1f\x8b"
_CARRIAGE_RETURNS: Final = re.compile(rb"\r+$", re.MULTILINE)


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
def opened(path: Path, reports: Reports) -> Iterator[BinaryIO]:
    """The file's bytes, gzip undone. Raises ReplayError where it cannot be read, also later while it is."""
    try:
        with path.open("rb") as file:
            zipped = file.read(len(_GZIP)) == _GZIP
            file.seek(0)
            if zipped:
                with gzip.open(file) as unzipped:
                    yield unzipped  # type: ignore[misc]  # reads as a file does
            else:
                yield file
    except (OSError, EOFError, zlib.error) as error:
        reason = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        reports.add(None, "", reason)
        reports.raise_any()


def lines(file: BinaryIO, reports: Reports) -> Iterator[list[str]]:
    """The lines of one block after the other, each ended by a newline or by the file's end.

    What is no UTF-8 becomes ``\\xNN``. A line that is too long is reported, and is empty here.
    """
    number, rest = 1, b""
    while block := file.read(_BLOCK_BYTES):
        whole, newline, tail = block.rpartition(b"\n")
        if newline:
            texts = _texts(rest + whole, number, reports)
            number += len(texts)
            yield texts
            rest = tail
        else:
            # Of a line without an end no more is kept than shows that it is too long.
            rest = (rest + tail)[: MAX_LINE_BYTES + 1]
    if rest:
        yield _texts(rest, number, reports)


def _texts(block: bytes, first_number: int, reports: Reports) -> list[str]:
    """Only the first line can be longer than a block, and so than a line may be."""
    first_bytes = block.find(b"\n") if b"\n" in block else len(block)
    if first_bytes > MAX_LINE_BYTES:
        reports.add(first_number, "", f"longer than {MAX_LINE_BYTES} bytes")
        block = block[first_bytes:]
    if b"\r" in block:
        block = _CARRIAGE_RETURNS.sub(b"", block)
    return block.decode("utf-8", "backslashreplace").split("\n")
