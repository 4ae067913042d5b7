"""``nodeagent slurm``: a group; each command of it is a file beside this one, imported when it is called."""

import importlib
from collections.abc import Mapping
from typing import Final

import click

PARTS: Final[Mapping[str, str]] = {
    "bridge": "Follow the daemon; drain and resume this node in Slurm.",
    "health": "Look once; drain or resume this node in Slurm.",
}
"""Name -> one line of help; ``nodeagent.cli.commands.schedulers.slurm_NAME`` has the command."""


class Parts(click.Group):
    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(PARTS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in PARTS:
            return None
        module = f"nodeagent.cli.commands.schedulers.slurm_{cmd_name}"
        command = importlib.import_module(module).command
        if not isinstance(command, click.Command):
            raise TypeError(f"{module}.command is no command")
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(PARTS.items()))


@click.group("slurm", cls=Parts)
def command() -> None:
    """Drain this node in Slurm while it is to take no new work, and resume it when it is well again."""
