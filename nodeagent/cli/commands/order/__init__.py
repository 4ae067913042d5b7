"""The commands that order something of the daemon."""
