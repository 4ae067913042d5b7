"""Durability: inputs and events in one SQLite file, sequence numbers, epochs, retention. Decides nothing."""
