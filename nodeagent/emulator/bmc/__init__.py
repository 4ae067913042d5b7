"""The emulated BMC: what it lists, logs, and how it answers."""
