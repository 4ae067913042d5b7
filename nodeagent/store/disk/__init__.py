"""Writing to the disk, and what is done while the disk fails or is full."""
