"""The side of the supervisor that acts: it starts, signals, writes and connects. It decides nothing."""
