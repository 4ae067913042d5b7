"""What would have happened: a kernel log or a file of signals through tables and rules, in its own time."""
