"""The folder of a job: its journal, its counts, what a new supervisor finds there."""
