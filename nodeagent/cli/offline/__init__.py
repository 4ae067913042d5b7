"""What a command can say of the node without a daemon."""
