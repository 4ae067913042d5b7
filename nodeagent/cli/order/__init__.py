"""Commands that act: orders to the daemon, supervised jobs, and the programs that act for a scheduler."""
