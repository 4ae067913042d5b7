"""The vendor's libraries: found, loaded, declared and called."""
