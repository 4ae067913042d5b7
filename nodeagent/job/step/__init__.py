"""``job step``: one command on many nodes under Slurm, run again in place on all of them together."""
