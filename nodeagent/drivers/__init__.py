"""The drivers, a folder each, and what they share. What else is known of each: ``nodeagent.vendors``."""
