"""What may be done to a job: the command line, the keys of a policy, and the sources it is read from."""
