"""``nodeagent run``: the daemon in the foreground. Its work is ``nodeagent.daemon``'s."""

import os
from pathlib import Path

import click

from nodeagent.cli.options import config_option, read_config


@click.command("run")
@config_option
@click.option(
    "--stream/--no-stream",
    default=None,
    help="Print events as readable lines. Without either: unless systemd's journal takes them.",
)
def command(config_path: Path | None, stream: bool | None) -> None:
    """Start the daemon in the foreground; Ctrl-C or SIGTERM stops it."""
    config = read_config(config_path)
    from nodeagent.daemon import app

    if stream is None:
        stream = "JOURNAL_STREAM" not in os.environ
    raise SystemExit(app.run(config, config_path, stream))
