"""A group of commands, each in a file of its own that is imported when it is called."""

import importlib
from collections.abc import Mapping
from typing import Any

import click


def command_of(module: str) -> click.Command:
    """The module's ``command``. Raises ``ImportError``."""
    command = importlib.import_module(module).command
    if not isinstance(command, click.Command):
        raise TypeError(f"{module}.command is no command")
    return command


class CommandGroup(click.Group):
    """``parts``: name -> one line of help. The module of each is called as ``prefix`` and its name."""

    def __init__(self, *arguments: Any, parts: Mapping[str, str], prefix: str, **others: Any) -> None:
        super().__init__(*arguments, **others)
        self._parts = parts
        self._prefix = prefix

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(self._parts)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        return command_of(self._prefix + cmd_name) if cmd_name in self._parts else None

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self._parts.items()))
