"""The side of the supervisor that acts: it runs, measures, signals, writes and speaks. It decides nothing."""
