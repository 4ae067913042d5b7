"""Commands that act for a scheduler."""
