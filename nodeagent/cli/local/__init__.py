"""Commands that work on this machine: tables, configuration, logs, sources, the emulator, the daemon."""
