"""Simulated nodes on which resets happen: tables, hardware, the actuator, plots, invariants, mutations."""
