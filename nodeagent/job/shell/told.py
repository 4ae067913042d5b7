"""What the supervisor says to people: one line on the standard error, never more than it has to say."""

import os
from contextlib import suppress
from typing import Final

PREFIX: Final = "nodeagent-job: "

_STDERR: Final = 2


def tell(text: str) -> None:
    """At once and whole, between the lines of the command. Where nobody can read it any more, it is lost."""
    line = f"{PREFIX}{' '.join(text.split())}\n"
    with suppress(OSError):  # closed, a full disk, a reader that went away: no reason to end a job
        os.write(_STDERR, line.encode("utf-8", "replace"))
