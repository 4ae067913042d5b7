"""Who may call, how much of the daemon a caller may use, and the sockets that calls come in by."""
