"""Has resets done: devices detached, the reset process started, its result brought to the core."""
