"""The pure core: timestamped inputs in, events and actions out. No I/O, no clock, no randomness."""
