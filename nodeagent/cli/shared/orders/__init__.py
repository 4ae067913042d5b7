"""What orders share: in whose name, for how long, whether they last, and faults as senders write them."""
