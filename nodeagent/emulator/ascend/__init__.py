"""Emulated NPUs."""
