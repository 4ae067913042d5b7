"""``nodeagent slurm``: a group; each command of it is a file beside this one, imported when it is called."""

from collections.abc import Mapping
from typing import Final

import click

from nodeagent.cli.shared.command_group import CommandGroup

PARTS: Final[Mapping[str, str]] = {
    "bridge": "Follow the daemon; drain and resume this node in Slurm.",
    "health": "Look once; drain or resume this node in Slurm.",
}
"""Name -> one line of help; ``nodeagent.cli.commands.schedulers.slurm_NAME`` has the command."""


@click.group("slurm", cls=CommandGroup, parts=PARTS, prefix="nodeagent.cli.commands.schedulers.slurm_")
def command() -> None:
    """Drain this node in Slurm while it is to take no new work, and resume it when it is well again."""
