"""The commands that work on files: fault tables, the configuration, logs."""
