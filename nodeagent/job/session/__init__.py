"""The decisions of one supervisor: inputs in, effects out. It does no I/O and knows no clock."""
