"""Messages of the supervisor to people: one line each, on the standard error."""

import os
import select
from contextlib import suppress
from typing import Final

PREFIX: Final = "nodeagent-job: "

_STDERR: Final = 2
_MAX_BYTES: Final = 4096
"""A pipe that can be written to takes so many at once: pipe(7), PIPE_BUF."""

_READER_HAS_MS: Final = 500


def print_message(text: str) -> None:
    """At once and whole, between the lines of the command. Where nobody reads it, it is lost: a supervisor
    that waits for a reader would stop no job, and end with none.
    """
    words = " ".join(text.split())
    shown = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in words)
    line = f"{PREFIX}{shown}".encode("utf-8", "replace")[: _MAX_BYTES - 1] + b"\n"
    with suppress(OSError):  # closed, a full disk, a reader that went away: no reason to end a job
        poll = select.poll()
        poll.register(_STDERR, select.POLLOUT)
        if poll.poll(_READER_HAS_MS):
            os.write(_STDERR, line)
