"""From signals and polls to conditions: how a fault opens, changes and closes."""
