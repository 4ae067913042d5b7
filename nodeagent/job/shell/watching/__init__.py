"""What a run does: its processes measured, its beats and its progress read."""
