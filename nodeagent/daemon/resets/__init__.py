"""Carries out resets: devices detached, the reset process started, its result brought to the core."""
