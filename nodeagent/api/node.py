"""Who speaks: what every response says of the node and of this daemon. Values only."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """``node_id`` is the machine-id, ``boot_id`` the kernel's; ``started_wall_ns`` when this daemon began."""

    node_id: str
    node_name: str
    boot_id: str
    version: str
    started_wall_ns: int
