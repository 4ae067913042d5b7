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
    from nodeagent.cli import logs
    from nodeagent.daemon import app
    from nodeagent.outlets.journal import runs_under_journal

    in_journal = runs_under_journal(os.environ)
    logs.begin(for_journal=in_journal)
    if stream is None:
        stream = not in_journal
    raise SystemExit(app.run(config, config_path, stream))
