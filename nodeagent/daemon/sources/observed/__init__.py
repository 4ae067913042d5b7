"""What of a source is observed, and what was seen of it: all of it pure."""
