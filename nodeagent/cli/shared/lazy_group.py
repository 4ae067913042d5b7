"""A group of commands whose modules are imported only when one of their commands is called.

So ``nodeagent status`` starts fast, and a list of commands or a completion imports none of them.
"""

import importlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import click
from click.shell_completion import CompletionItem

COMMANDS: Final = "nodeagent.cli."
"""The package of the modules in which commands are."""


class Part(NamedTuple):
    """A command of a group. ``place`` is ``FOLDER.MODULE:NAME``: a command, or a mapping that has it by its
    name.
    ``text`` is its line of help.
    """

    place: str
    text: str

    @property
    def module(self) -> str:
        return COMMANDS + self.place.partition(":")[0]

    def load(self, name: str) -> click.Command:
        """Raises ``ImportError``."""
        found = getattr(importlib.import_module(self.module), self.place.partition(":")[2])
        command = found[name] if isinstance(found, Mapping) else found
        if not isinstance(command, click.Command):
            raise TypeError(f"{self.place} is not a command")
        return command


class LazyGroup(click.Group):
    """``parts``: the commands by their names."""

    def __init__(self, *arguments: Any, parts: Mapping[str, Part], **others: Any) -> None:
        super().__init__(*arguments, **others)
        self.parts = parts

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(self.parts)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        return self.parts[cmd_name].load(cmd_name) if cmd_name in self.parts else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, but with suggestions: click can suggest only commands that are loaded."""
        if args[0] not in self.parts and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise click.NoSuchCommand(args[0], possibilities=list(self.parts), ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, part.text) for name, part in self.parts.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        offered = [
            CompletionItem(name, help=part.text)
            for name, part in self.parts.items()
            if name.startswith(incomplete)
        ]
        return [*offered, *click.Command.shell_complete(self, ctx, incomplete)]
