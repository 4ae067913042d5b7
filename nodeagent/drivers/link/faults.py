"""Which faults a port has, from the state that was read. Pure: codes and their evidence, no levels.

A port that an administrator switched off is in order. So is a port that has never worked: many ports have no
cable. A port that the configuration expects must exist and be up in any case.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nodeagent.drivers.link.ports import Port

PORT_DOWN: Final = "PORT_DOWN"
ETHERNET_PORT_DOWN: Final = "ETHERNET_PORT_DOWN"
PORT_MISSING: Final = "PORT_MISSING"
PORT_SLOW: Final = "PORT_SLOW"
BOND_DEGRADED: Final = "BOND_DEGRADED"

Evidence = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkState:
    """``text`` describes the link. ``was_up``: it has worked before, as far as is known.

    ``losses`` is how often it lost its link, None if it is not counted. ``idle_members`` are the interfaces
    of a bond that do not work, ``rate_gbps`` None where it is not known.
    """

    is_up: bool
    is_enabled: bool
    text: str
    was_up: bool = False
    losses: int | None = None
    rate_gbps: float | None = None
    idle_members: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """``codes`` are active, with their evidence; the state of those in ``unread`` is unknown."""

    codes: Mapping[str, Evidence] = field(default_factory=dict)
    unread: tuple[str, ...] = ()


def down_code(port: Port) -> str:
    return PORT_DOWN if port.is_needed else ETHERNET_PORT_DOWN


def faults_of(port: Port, seen: LinkState, least_gbps: float) -> Found:
    """``least_gbps`` is the rate that it should have, 0 for any."""
    if port.is_missing:
        return Found(codes={PORT_MISSING: {"state": "no port of this name is on the node"}})
    codes: dict[str, Evidence] = {}
    unread: tuple[str, ...] = ()
    if not seen.is_up:
        unread = (PORT_SLOW,)
        if port.is_expected or (seen.is_enabled and seen.was_up):
            codes[down_code(port)] = _evidence(port, seen)
        elif seen.is_enabled:
            # It may have worked before this worker started.
            unread = (PORT_SLOW, PORT_DOWN, ETHERNET_PORT_DOWN)
    elif seen.rate_gbps is not None and seen.rate_gbps < least_gbps:
        rates = {"rate_gbps": f"{seen.rate_gbps:g}", "expected_gbps": f"{least_gbps:g}"}
        codes[PORT_SLOW] = {**_evidence(port, seen), **rates}
    if port.members and seen.idle_members:
        codes[BOND_DEGRADED] = {"members_down": ", ".join(seen.idle_members)[:1024]}
    return Found(codes=codes, unread=unread)


def _evidence(port: Port, seen: LinkState) -> Evidence:
    rdma = {"rdma": port.rdma.name} if port.rdma is not None else {}
    return {"state": seen.text, **rdma}
