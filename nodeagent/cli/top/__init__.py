"""``nodeagent top``: the devices of a node and their faults, live, on a terminal."""
