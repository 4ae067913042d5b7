"""Programs that act for a scheduler on what the daemon says. They are its clients, and know no more."""
