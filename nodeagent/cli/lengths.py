"""A length of time on the command line, such as 2h: how it is read, for every command that takes one."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import click

from nodeagent.toml.quantities import parse_duration_ns

Command = TypeVar("Command", bound=Callable[..., Any])


def length_option(help_text: str) -> Callable[[Command], Command]:
    """``length``: a timedelta or None."""
    return click.option("--for", "length", metavar="DURATION", callback=_length, help=help_text)


def _length(_context: click.Context, _parameter: click.Parameter, text: str | None) -> timedelta | None:
    if text is None:
        return None
    try:
        return timedelta(microseconds=parse_duration_ns(text) // 1000)
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(str(error)) from error
