"""Worker processes: the wire between them and the daemon, and the program that hosts one driver."""
