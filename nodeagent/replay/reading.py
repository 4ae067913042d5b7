"""Opens what is to be replayed and hands out its lines, numbered and bounded. It understands none of them."""

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from nodeagent.toml.problem import Problem, Problems

MAX_LINE_BYTES: Final = 1 << 20
_GZIP: Final = b"\x1f\x8b"


class ReplayError(Exception):
    """The file cannot be replayed; str() is one line for each problem."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


@dataclass(slots=True)
class Reports:
    """Gathers what is wrong with one file, so that all of it is told at once."""

    file: str
    problems: Problems

    def add(self, line: int | None, key: str, reason: str) -> None:
        self.problems.add(Problem(file=self.file, line=line, key=key, reason=reason))

    def raise_any(self) -> None:
        if self.problems:
            raise ReplayError(self.problems.told())


def lines(path: Path, reports: Reports) -> Iterator[tuple[int, str]]:
    """Number, counted from 1, and text; gzip is undone, what is no UTF-8 becomes ``\\xNN``.

    Raises ReplayError where the file cannot be read; a line that is too long is reported and left out.
    """
    try:
        with path.open("rb") as file:
            zipped = file.read(2) == _GZIP
            file.seek(0)
            if zipped:
                with gzip.open(file) as unzipped:
                    yield from _bounded(unzipped, reports)  # type: ignore[arg-type]  # reads as a file does
            else:
                yield from _bounded(file, reports)
    except (OSError, EOFError, zlib.error) as error:
        reason = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        reports.add(None, "", reason)
        reports.raise_any()


def _bounded(file: BinaryIO, reports: Reports) -> Iterator[tuple[int, str]]:
    number = 0
    while raw := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(raw) > MAX_LINE_BYTES:
            reports.add(number, "", f"longer than {MAX_LINE_BYTES} bytes")
            while raw and not raw.endswith(b"\n"):
                raw = file.readline(MAX_LINE_BYTES)
            continue
        yield number, raw.rstrip(b"\r\n").decode("utf-8", "backslashreplace")
