"""One chip: what a poll of it asks, and what is remembered from one poll to the next."""
