"""A moment on the command line, such as 2026-01-02: how it is read, for every command that takes one."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import click
from google.protobuf.timestamp_pb2 import Timestamp

from nodeagent.toml.values import parse_duration_ns

Command = TypeVar("Command", bound=Callable[..., Any])

_FORMS: Final = "2026-01-02T03:04:05Z, 2026-01-02, or how long ago: 90m"


def time_option(name: str, help_text: str) -> Callable[[Command], Command]:
    """A ``Timestamp`` or None, under the option's name."""
    return click.option(name, metavar="TIME", callback=_moment, help=f"{help_text}: {_FORMS}.")


def _moment(_context: click.Context, _parameter: click.Parameter, text: str | None) -> Timestamp | None:
    return None if text is None else moment(text, time.time_ns())


def moment(text: str, now_ns: int) -> Timestamp:
    """The time that the text names, in UTC where it names no zone. Raises ``click.BadParameter``."""
    stamp = Timestamp()
    try:
        ago_ns = parse_duration_ns(text)
    except ValueError:
        stamp.FromDatetime(_named(text))
    else:
        stamp.FromNanoseconds(max(0, now_ns - ago_ns))
    return stamp


def _named(text: str) -> datetime:
    try:
        named = datetime.fromisoformat(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is no time: {_FORMS}") from error
    return named.replace(tzinfo=UTC) if named.tzinfo is None else named
