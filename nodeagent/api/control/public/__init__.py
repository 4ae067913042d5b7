"""Faults that other systems report: the call, what its fields may hold, and who sends."""
