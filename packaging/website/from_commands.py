"""The reference of the commands: the help of each, as it prints it."""

from collections.abc import Iterator
from typing import Final

import click

from man.from_click import SUPERVISORS, context_of
from nodeagent.cli.main import SECTIONS, main
from website.markdown import block

_WIDTH: Final = 110
_HEAD: Final = """# Help of all commands

`nodeagent COMMAND -h` prints the same. [Commands for programs](../docs/commands.md) has the fields of their
JSON output and their exit statuses.
"""


def page() -> str:
    """A section for each command, in the order of the help."""
    whole = context_of(main, "nodeagent")
    parts = [_HEAD]
    for section in SECTIONS:
        parts.append(f"## {section.heading}\n")
        for name in section.commands:
            if (command := main.get_command(whole, name)) is not None:
                parts += _of(context_of(command, name, whole))
    return "\n".join(parts)


def _of(context: click.Context) -> Iterator[str]:
    """The command, and what it groups."""
    yield f"### {context.command_path}\n\n{block(_help(context))}"
    if isinstance(group := context.command, click.Group):
        for name in group.list_commands(context):
            if (command := group.get_command(context, name)) is not None:
                yield from _of(context_of(command, name, context))


def _help(context: click.Context) -> str:
    if (parser := SUPERVISORS.get(context.command_path.replace(" ", "-"))) is not None:
        return parser().format_help()
    context.terminal_width = context.max_content_width = _WIDTH
    return context.get_help()
