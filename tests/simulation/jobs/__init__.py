"""Simulated nodes with supervised jobs: twins of supervisors, what befalls them, invariants, mutations."""
