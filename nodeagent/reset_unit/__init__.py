"""Resets of devices: their configuration, the files that ask for one, and the process that does it."""
