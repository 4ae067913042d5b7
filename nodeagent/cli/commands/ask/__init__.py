"""The commands that ask: how the node is, why, and who follows it."""
