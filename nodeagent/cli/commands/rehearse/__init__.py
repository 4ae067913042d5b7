"""The commands that try something out: a source, a fault, a node without accelerators."""
