"""The session of a supervised command: values in, orders out. It does no I/O and knows no clock."""
