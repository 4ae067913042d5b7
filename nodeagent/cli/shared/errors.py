"""How a command ends when it cannot do what was asked: one clear line, an exit status, no traceback."""

from collections.abc import Iterator
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
    """What click says of a wrong command line names words of it, and a script may have these from others."""
    try:
        yield
    except click.ClickException as error:
        said = "\n".join(map(printable, error.message.splitlines()))
        error.message = said  # type: ignore[misc]  # click shows it
        raise
