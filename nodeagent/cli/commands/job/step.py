"""``nodeagent job step``: the loop of a step on many nodes, which reads its own command line.

Called as a program it is not even imported: ``nodeagent.cli.entry``.
"""

import click

from nodeagent.cli.shared import completion
from nodeagent.job.main import main


@click.command(
    "step",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, shell_complete=completion.files)
def command(words: tuple[str, ...]) -> None:
    """Run a command on the nodes of a Slurm job, and run it again on all of them together."""
    raise SystemExit(main(["step", *words]))
