"""Sends the events of this node to other systems, as a durable consumer: in order, each at least once."""
