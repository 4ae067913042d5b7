"""The ``nodeagent`` command: one file per command. It shows and asks; it judges nothing by itself."""
