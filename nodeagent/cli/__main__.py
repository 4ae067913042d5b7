"""``python -m nodeagent.cli``: the command where no script of that name is installed."""

from nodeagent.cli.entry import main

main()
