"""Lines of a kernel log as text: which forms there are, what may stand before them, and what they say."""
