"""``nodeagent run``: the daemon in the foreground. Its work is ``nodeagent.daemon``'s."""

import os
from pathlib import Path

import click

from nodeagent.cli.shared.errors import EXIT_CONFIG, Failure
from nodeagent.cli.shared.options import config_option
from nodeagent.config.last import choose
from nodeagent.config.load import ConfigError
from nodeagent.system.streams import runs_under_journal


@click.command("run")
@config_option
@click.option(
    "--stream/--no-stream",
    default=None,
    help="Print events as readable lines. Default: only if systemd's journal does not take them.",
)
def command(config_path: Path | None, stream: bool | None) -> None:
    """Start the daemon in the foreground; Ctrl-C or SIGTERM stops it.

    If the configuration is wrong, a service ($STATE_DIRECTORY is set) continues with the one that it last ran
    with, and reports this as a condition of the node. Otherwise it ends with status 78.
    """
    try:
        chosen = choose(config_path, os.environ)
    except ConfigError as error:
        raise Failure(str(error), EXIT_CONFIG) from error
    from nodeagent.cli.shared import logs
    from nodeagent.daemon import app

    logs.begin()
    if stream is None:
        stream = not runs_under_journal(os.environ)
    raise SystemExit(app.run(chosen, config_path, stream))
