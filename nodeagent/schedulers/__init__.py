"""Clients of the daemon that act for schedulers. They import its client library, and never the daemon."""
