"""Resets from the proposal to the verified end."""
