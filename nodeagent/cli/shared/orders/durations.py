"""A length of time on the command line, such as 2h: how it is read, for every command that takes one."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, TypeVar

import click

from nodeagent.toml.values import parse_duration_ns

Command = TypeVar("Command", bound=Callable[..., Any])

_LONGEST_NS: Final = 3650 * 86_400 * 10**9


def length_option(help_text: str) -> Callable[[Command], Command]:
    """``length``: a timedelta or None."""
    return click.option("--for", "length", metavar="DURATION", callback=_length, help=help_text)


def _length(_context: click.Context, _parameter: click.Parameter, text: str | None) -> timedelta | None:
    if text is None:
        return None
    try:
        length_ns = parse_duration_ns(text)
    except ValueError as error:
        wanted = "a whole number and one of ms, s, m, h, d, such as 90m"
        raise click.BadParameter(f"{text!r} is no length of time: {wanted}") from error
    if not 0 < length_ns <= _LONGEST_NS:
        raise click.BadParameter("must be longer than 0" if not length_ns else "must be 3650d at most")
    return timedelta(microseconds=length_ns // 1000)
