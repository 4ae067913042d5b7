"""How a command ends when it cannot do what was asked: one clear line, an exit status, no traceback."""

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, Final

import click

from nodeagent.cli.shared.output import note, printable

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_NOT_UNDERSTOOD: Final = 3
"""A file was read, and more than half of it was not understood."""

EXIT_UNAVAILABLE: Final = 69
"""No daemon answers (sysexits.h)."""

EXIT_NOT_ALLOWED: Final = 77
EXIT_CONFIG: Final = 78
EXIT_INTERRUPTED: Final = 130


class Failure(click.ClickException):
    """Ends the command. ``message`` may have several lines, one for each thing wrong."""

    def __init__(self, message: str, exit_code: int = EXIT_FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc]  # click reads it from the instance

    def show(self, file: IO[Any] | None = None) -> None:
        for line in self.message.splitlines():
            note(f"nodeagent: {line}", file)


@contextmanager
def made_printable() -> Iterator[None]:
    """What is said of a wrong command line, and of what it names, has words of it, and a script may have
    these from others. They begin no line.
    """
    try:
        yield
    except click.ClickException as error:
        said = _with_words_on_one_line(error.message, sys.argv[1:])
        error.message = "\n".join(map(printable, said.splitlines()))  # type: ignore[misc]  # click shows it
        raise


def _with_words_on_one_line(text: str, words: Sequence[str]) -> str:
    """A path may stand there in another form than in the command line: its parts are the same."""
    for part in (part for word in words for part in re.split("[/=]", word) if len(part.splitlines()) > 1):
        text = text.replace(part, printable(part))
    return text
