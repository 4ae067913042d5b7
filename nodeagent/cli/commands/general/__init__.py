"""The commands that start the daemon, and that speak of nodeagent itself."""
