"""Ports of a 950: from "a port is down" to what that means for the chip, in MindCluster's own codes.

A UnifiedBus port down separates its chip from its neighbours, unless every chip of the node has lost one:
then the cause lies outside them. Of the two Ethernet ports (UBoE) one down is a loss of bandwidth, both
cut the chip off. What is derived here comes and goes with the codes it is derived from; it has no memory
of its own but when each chip was last read.

How many ports are down is counted by the parts of the chip on which the code stands. MindCluster runs
``hccn_tool`` for it, as root (``GetUBPortsDownSnapshot`` of its hccn_tool.go). libdcmi gives the state of
ports only of cards (``dcmiv2_get_ub_port_link_status``), and those with Ethernet ports are none.
"""

import threading
from collections.abc import Collection
from typing import Final

UB_PORT_DOWN: Final = "81B18603"
UB_DOWN_HERE: Final = "020001002"
UB_DOWN_EVERYWHERE: Final = "020000002"

NETWORK_PORT_DOWN: Final = "81078603"
UBOE_PORT_DOWN: Final = "81078607"
UBOE_ONE_DOWN: Final = "110000002"
UBOE_BOTH_DOWN: Final = "110001024"

SILENT_NS: Final = 5_000_000_000
"""A chip that was not read for this long is not waited for."""


class UnifiedBusPorts:
    """The ports of all chips of the node; each chip asks for itself, in the thread that polls it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read_ns: dict[str, int] = {}
        self._down_ns: dict[str, int] = {}

    def expect(self, devices: Collection[str], now_ns: int) -> None:
        """These are the chips of the node; one that is new among them has yet to be read."""
        with self._lock:
            self._read_ns = {device: self._read_ns.get(device, now_ns) for device in devices}
            self._down_ns = {name: at_ns for name, at_ns in self._down_ns.items() if name in self._read_ns}

    def derive(self, device: str, active: Collection[str], now_ns: int) -> set[str] | None:
        """What follows for ``device``, which was read now; None until the others were read since.

        Of a chip that does not answer, what it said last is taken.
        """
        with self._lock:
            self._read_ns[device] = now_ns
            if UB_PORT_DOWN not in active:
                self._down_ns.pop(device, None)
                return set()
            since_ns = self._down_ns.setdefault(device, now_ns)
            if any(
                read_ns < since_ns and now_ns - read_ns <= SILENT_NS for read_ns in self._read_ns.values()
            ):
                return None
            everywhere = self._down_ns.keys() >= self._read_ns.keys()
            return {UB_DOWN_EVERYWHERE if everywhere else UB_DOWN_HERE}


def ethernet_ports(active: Collection[str], slaves_down: int) -> set[str]:
    """``slaves_down``: on how many ports ``UBOE_PORT_DOWN`` stands, as far as that is known; the list of
    codes itself names one, however many there are.
    """
    down = int(NETWORK_PORT_DOWN in active) + max(int(UBOE_PORT_DOWN in active), slaves_down)
    if UBOE_PORT_DOWN not in active:
        return set()
    return {UBOE_BOTH_DOWN if down > 1 else UBOE_ONE_DOWN}
