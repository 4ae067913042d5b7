"""Strict reading of TOML for the configuration and the tables: units, fields, line numbers, problems."""
