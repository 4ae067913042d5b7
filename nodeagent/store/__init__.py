"""Durability: inputs and events in one SQLite file, sequence numbers, epochs, retention. It decides nothing."""
