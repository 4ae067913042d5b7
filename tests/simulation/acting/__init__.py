"""Simulated nodes on which resets happen: tables, hardware, actuator, activities, invariants, mutations."""
