"""Named defects, put into the core for a while: each must be caught."""
