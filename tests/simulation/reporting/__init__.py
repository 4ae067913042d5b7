"""A life about faults that other systems report: what they say, a twin of what stands, and defects."""
