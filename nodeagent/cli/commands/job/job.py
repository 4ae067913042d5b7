"""``nodeagent job``: a group; each command of it is a file beside this one, imported when it is called."""

from collections.abc import Mapping
from typing import Final

import click

from nodeagent.cli.shared.command_group import CommandGroup

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


@click.group("job", cls=CommandGroup, parts=PARTS, prefix="nodeagent.cli.commands.job.")
def command() -> None:
    """Work with jobs whose command is supervised."""
