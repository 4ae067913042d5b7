"""The Slurm bridge without a Slurm: what it decides."""
