"""The kernel log as a source: records in, signals of the tables' patterns out, losses counted."""
