"""Fault tables: TOML folders in, one checked and immutable catalog out."""
