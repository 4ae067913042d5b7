"""``nodeagent job run``: the supervisor of a job's command, which reads its own command line.

Called as a program it is not even imported: ``nodeagent.cli.entry``.
"""

import click

from nodeagent.cli.shared import completion
from nodeagent.job.main import main


@click.command(
    "run",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, shell_complete=completion.files)
def command(words: tuple[str, ...]) -> None:
    """Run a command, watch it, and run it again in place where that is wanted."""
    raise SystemExit(main(["run", *words]))
