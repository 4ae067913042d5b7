"""The sources of a daemon under test: those that its configuration names, and no other.

Each source that is on starts a process, also where nothing of it is there: most of what a start costs.
"""

from nodeagent.vendors import DRIVERS


def only_named(configuration: str) -> str:
    """The configuration with each source off that has no section in it."""
    off = (name for name in DRIVERS if f"[drivers.{name}]" not in configuration)
    return configuration + "".join(f"\n[drivers.{name}]\nenabled = false\n" for name in off)
