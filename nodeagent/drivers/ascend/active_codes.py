"""The fault codes that are active on a chip: those that the library lists, and those that follow from them.

Two kinds of codes are derived for the ports of a 950, in MindCluster's codes. A UnifiedBus port that is down
separates its chip from its neighbours; if every chip of the node has lost one, the cause lies outside them.
If one of the two Ethernet ports (UBoE) is down, bandwidth is lost; if both are, the chip is cut off. A
derived code ends with the codes that it is derived from.

The number of ports that are down is the number of parts of the chip that have the code. MindCluster runs
``hccn_tool`` as root for this number (``GetUBPortsDownSnapshot`` of its hccn_tool.go). libdcmi reports the
state of ports only for cards (``dcmiv2_get_ub_port_link_status``), and those have no Ethernet ports.

No call is repeated, and a chip that cannot be asked has no codes here.
"""

import threading
import time
from collections.abc import Callable, Collection
from typing import Final

from nodeagent.drivers.api import CallFailed
from nodeagent.drivers.ascend.dcmi_calls import DcmiChip, ImpossibleValue, NotSupported
from nodeagent.drivers.ascend.events import ChipEvents, Listener, Port, code_of, port_of
from nodeagent.drivers.ascend.slow_calls import Refusals
from nodeagent.wire import Active

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

        For a chip that does not answer, its last answer counts.
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
    """``slaves_down``: on how many ports ``UBOE_PORT_DOWN`` is active, as far as that is known; the list of
    codes itself names one, however many there are.
    """
    down = int(NETWORK_PORT_DOWN in active) + max(int(UBOE_PORT_DOWN in active), slaves_down)
    if UBOE_PORT_DOWN not in active:
        return set()
    return {UBOE_BOTH_DOWN if down > 1 else UBOE_ONE_DOWN}


Derive = Callable[[str, set[str], int], tuple[set[str], bool]]
"""From a device, its active codes and the time to the codes that follow, and whether those are all."""


class ActiveCodes:
    """The codes of one chip. ``refused`` counts values that cannot be."""

    def __init__(
        self,
        chip: DcmiChip,
        events: ChipEvents,
        listener: Listener,
        derive: Derive | None,
        refusals: Refusals,
        list_leads_s: float,
    ) -> None:
        self.refused = 0
        self._chip = chip
        self._events = events
        self._listener = listener
        self._derive = derive
        self._refusals = refusals
        self._list_leads_s = list_leads_s
        self._listed: set[str] | None = None
        self._asks_events = True

    def read(self, device: str, *, slow_round: bool) -> tuple[tuple[Active, ...], bool]:
        """The active codes, and whether it is known that there are no others: what makes no sense in the list
        may hide one, and what an event is just reporting is left to it. Raises
        ``CallFailed``.
        """
        try:
            listed, full = self._chip.error_codes()
        except ImpossibleValue:
            self.refused += 1
            raise
        nonsense = listed.count(0) + listed.count(0xFFFFFFFF)
        self.refused += nonsense
        codes = {code_of(code) for code in listed if code not in (0, 0xFFFFFFFF)}
        self._await_events(codes)
        now_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        codes, unsettled = self._events.settle(codes, now_ns)
        severity = self._listener.severity
        if UBOE_PORT_DOWN in codes or any(severity(code) is None for code in codes):
            self._read_events(slow_round=slow_round)
        decided = True
        if self._derive is not None:
            derived, decided = self._derive(device, codes, now_ns)
            codes |= derived
        active = tuple(Active(code=code, severity=severity(code)) for code in sorted(codes - unsettled))
        return active, decided and not full and not nonsense and not unsettled

    def _await_events(self, listed: set[str]) -> None:
        """Wait for the events of codes that the list shows for the first time; what stood at the start has
        none.
        """
        before, self._listed = self._listed, listed
        if before is not None and (fresh := listed - before):
            self._events.expect(fresh, self._list_leads_s)

    def _read_events(self, *, slow_round: bool) -> None:
        """Read the events of codes of which none has given the severity, and the parts on which each is
        active, which the list of codes does not name; only some libraries report it
        (``dcmiv2_get_device_current_fault_event``).
        """
        if not self._asks_events or not self._refusals.asks("events", slow_round=slow_round):
            return
        parts: dict[str, set[Port]] = {}
        try:
            for event in self._chip.current_events():
                self._listener.learn(code_of(event.event_id), event.severity)
                parts.setdefault(code_of(event.event_id), set()).add(port_of(event))
            self._events.set_parts(parts)
            self._refusals.note("events", refused=False)
        except NotSupported:
            self._asks_events = False
        except ImpossibleValue:
            self.refused += 1
        except CallFailed:
            # All this stays unknown for now; the codes themselves were read.
            self._refusals.note("events", refused=True)
