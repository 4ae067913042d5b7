"""A group of commands, each in a file of its own that is imported when it is called."""

import importlib
from collections.abc import Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem


def command_of(module: str) -> click.Command:
    """The module's ``command``. Raises ``ImportError``."""
    command = importlib.import_module(module).command
    if not isinstance(command, click.Command):
        raise TypeError(f"{module}.command is no command")
    return command


def offered(texts: Mapping[str, str], begun: str) -> list[CompletionItem[str]]:
    """The commands that begin so, each with its line of help, for a shell: none of them is imported."""
    return [CompletionItem(name, help=text) for name, text in texts.items() if name.startswith(begun)]


class CommandGroup(click.Group):
    """``parts``: name -> one line of help. The module of each is called as ``prefix`` and its name."""

    def __init__(self, *arguments: Any, parts: Mapping[str, str], prefix: str, **others: Any) -> None:
        super().__init__(*arguments, **others)
        self.parts = parts
        self._prefix = prefix

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(self.parts)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        return command_of(self._prefix + cmd_name) if cmd_name in self.parts else None

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self.parts.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        return [*offered(self.parts, incomplete), *click.Command.shell_complete(self, ctx, incomplete)]
