"""A life about faults that several devices have at once: how they come and go, the twin, the defects."""
