"""``nodeagent job``: a group; each command of it is a file beside this one, imported when it is called."""

import importlib
from collections.abc import Mapping
from typing import Final

import click

PARTS: Final[Mapping[str, str]] = {
    "run": "Run a command, watch it, and run it again in place where that is wanted.",
    "step": "Run a command on the nodes of a Slurm job, and run it again on all of them together.",
    "list": "List the jobs that use this node.",
    "show": "Show one job, and what happened to it.",
    "stop": "Have a supervised job stop its command.",
    "rerun": "Have a supervised job run its command again.",
    "replay": "Show what a recorded run would have been suspected of.",
}
"""Name -> one line of help; ``nodeagent.cli.commands.job.NAME`` has the command."""


class Parts(click.Group):
    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(PARTS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in PARTS:
            return None
        command = importlib.import_module(f"nodeagent.cli.commands.job.{cmd_name}").command
        if not isinstance(command, click.Command):
            raise TypeError(f"nodeagent.cli.commands.job.{cmd_name}.command is no command")
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(PARTS.items()))


@click.group("job", cls=Parts)
def command() -> None:
    """Work with jobs whose command is supervised."""
