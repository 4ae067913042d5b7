"""The commands that connect schedulers."""
