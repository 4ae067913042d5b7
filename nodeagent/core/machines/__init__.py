"""TODO: what this folder is for, and what it refuses to do."""
