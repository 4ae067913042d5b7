"""nodeagent.toml: its sections, their keys and defaults, and the last configuration that worked."""
