"""``nodeagent version``."""

import platform

import click

from nodeagent import __version__
from nodeagent.cli.shared.options import Output, output_option
from nodeagent.cli.shared.output import write, write_json


@click.command("version")
@output_option
def command(output: Output) -> None:
    """Show the version."""
    if output == Output.JSON:
        write_json({"version": __version__, "python": platform.python_version()})
    else:
        write(f"nodeagent {__version__}")
