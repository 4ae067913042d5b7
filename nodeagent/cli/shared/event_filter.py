"""The options that select events, the same for every command that shows or passes on events."""

from collections.abc import Callable
from typing import Final

import click

from nodeagent.cli.shared import completion
from nodeagent.cli.shared.options import Command, with_options
from nodeagent.core.model import EventKind, Level


def kind_option(help_text: str) -> Callable[[Command], Command]:
    """``kinds``, as texts."""
    return click.option(
        "--kind",
        "kinds",
        multiple=True,
        type=click.Choice([str(kind) for kind in EventKind]),
        metavar="KIND",
        help=help_text,
    )


event_filter_options: Final = with_options(
    click.option(
        "--device",
        "devices",
        multiple=True,
        shell_complete=completion.devices,
        help="Of this device's name or id; may be repeated.",
    ),
    click.option(
        "--code",
        "codes",
        multiple=True,
        shell_complete=completion.codes,
        help="Of this code, or family (XID_*); may be repeated.",
    ),
    kind_option(f"Of this kind; may be repeated: {', '.join(EventKind)}."),
    click.option(
        "--min-level",
        type=click.Choice([str(level) for level in Level], case_sensitive=False),
        metavar="LEVEL",
        help="With this level or a worse one before or after it.",
    ),
)
"""``devices``, ``codes``, ``kinds`` and ``min_level``, as texts."""
