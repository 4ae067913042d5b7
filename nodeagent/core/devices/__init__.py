"""Which devices there are, which sources watch them, and who uses them."""
