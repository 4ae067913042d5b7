"""``nodeagent bundle``: one archive with what support needs to know of a node."""
