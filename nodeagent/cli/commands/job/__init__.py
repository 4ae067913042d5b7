"""``nodeagent job``: a module for each subcommand."""
