"""What is gathered of a run that failed or hangs."""
