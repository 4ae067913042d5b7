"""How a command ends when it cannot do what was asked: one clear line, an exit status, no traceback."""

from typing import IO, Any, Final

import click

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
            click.echo(f"nodeagent: {line}", file=file, err=file is None)
