"""``python -m nodeagent.cli``: the command where no script of that name is installed."""

from nodeagent.cli.main import main

main(prog_name="nodeagent")
