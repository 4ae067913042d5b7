"""Checks of the regular expressions that tables hold."""
