"""How a command ends when it cannot do what was asked: one clear line, an exit status, no traceback."""

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, Final

import click

from nodeagent.cli.shared.output import note
from nodeagent.cli.shared.printable import printable

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_NOT_UNDERSTOOD: Final = 3
"""A file was read, and more than half of it was not understood."""

EXIT_UNAVAILABLE: Final = 69
"""No daemon answers (sysexits.h)."""

EXIT_NOT_ALLOWED: Final = 77
EXIT_CONFIG: Final = 78
EXIT_INTERRUPTED: Final = 130


class CommandFailure(click.ClickException):
    """Ends the command. ``message`` may have several lines, one for each thing wrong."""

    def __init__(self, message: str, exit_code: int = EXIT_FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc]  # click reads it from the instance

    def show(self, file: IO[Any] | None = None) -> None:
        for line in self.message.splitlines():
            note(f"nodeagent: {line}", file)


@contextmanager
def made_printable() -> Iterator[None]:
    """Make the message of an error printable. It quotes the command line, which a script may have made of
    hostile texts: a quoted text cannot begin a line.
    """
    try:
        yield
    except click.ClickException as error:
        message = _with_arguments_on_one_line(error.message, sys.argv[1:])
        error.message = "\n".join(map(printable, message.splitlines()))  # type: ignore[misc]  # click shows it
        raise


def _with_arguments_on_one_line(text: str, arguments: Sequence[str]) -> str:
    """A path may be quoted in another form than in the command line: its parts are the same."""
    parts = (part for argument in arguments for part in re.split("[/=]", argument))
    for part in (each for each in parts if len(each.splitlines()) > 1):
        text = text.replace(part, printable(part))
    return text
