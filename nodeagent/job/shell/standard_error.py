"""The standard error, which a supervisor shares with its command: its own messages, and what a run has
written.

Messages are one line each. What a run writes can be read only where it goes to a file.
"""

from __future__ import annotations

import os
import select
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence


PREFIX: Final = "nodeagent-job: "

_STANDARD_ERROR: Final = 2
_MAX_BYTES: Final = 4096
"""A pipe that can be written to takes so many at once: pipe(7), PIPE_BUF."""

_READER_HAS_MS: Final = 500


def on_one_line(text: str, argv: Sequence[str]) -> str:
    """A message quotes the command line: no part of an argument, or of a path in it, may begin a line."""
    for part in (part for each in argv for part in each.replace("=", "/").split("/")):
        if len(part.splitlines()) > 1:
            text = text.replace(part, " ".join(part.splitlines()))
    return text


def print_message(text: str) -> None:
    """At once and whole, between the lines of the command. Without a reader it is lost: a supervisor
    that waits for a reader would stop no job, and end with none.
    """
    line_text = " ".join(text.split())
    shown = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in line_text)
    line = f"{PREFIX}{shown}".encode("utf-8", "replace")[: _MAX_BYTES - 1] + b"\n"
    with suppress(OSError):  # closed, a full disk, a reader that went away: no reason to end a job
        poll = select.poll()
        poll.register(_STANDARD_ERROR, select.POLLOUT)
        if poll.poll(_READER_HAS_MS):
            os.write(_STANDARD_ERROR, line)


@dataclass(frozen=True, slots=True)
class WrittenErrors:
    """What the run writes to its standard error, where that can be read: in ``path``, or, without one, in the
    file at descriptor 2. A pipe or a terminal keeps nothing.
    """

    path: Path | None = None

    def size(self) -> int | None:
        """None where there is no file."""
        try:
            found = os.fstat(_STANDARD_ERROR) if self.path is None else self.path.stat()
        except OSError:
            return None
        return found.st_size if stat.S_ISREG(found.st_mode) else None

    def appended(self, since: int, limit: int) -> bytes:
        """What was written after ``since``, at most the last ``limit`` bytes. Raises ``OSError``."""
        end = self.size()
        if end is None or end <= since:
            return b""
        # By its name in /proc: the descriptor itself may be open for writing only, and its place is others'.
        name = self.path or f"/proc/self/fd/{_STANDARD_ERROR}"
        opened = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(opened, min(limit, end - since), max(since, end - limit))
        finally:
            os.close(opened)
