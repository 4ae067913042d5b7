"""Stories with a real Slurm."""
