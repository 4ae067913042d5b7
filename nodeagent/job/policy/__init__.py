"""What may be done to a job: keys, values, options of the command line. It reads no file."""
