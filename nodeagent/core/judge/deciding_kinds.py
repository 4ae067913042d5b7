"""Whose verdicts say whether a whole node takes work."""

from nodeagent.core.model import NODE, Kind


def decides(kind: Kind | None, name: str) -> bool:
    """Those of chips, and the node's own: what any other part does to the node is in that.

    By the name, for a part may be of the node's kind: one that a record of the firmware has named.
    """
    return kind is Kind.CHIP or name == NODE
