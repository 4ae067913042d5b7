"""The codes that are active on a chip: what the library lists, what events add, and what follows from both.

Nothing is retried. It says nothing of a chip that cannot be asked.
"""

import time
from collections.abc import Callable

from nodeagent.drivers.api import CallFailed
from nodeagent.drivers.ascend.library.chip import Chip
from nodeagent.drivers.ascend.library.errors import Nonsense, NotSupported
from nodeagent.drivers.ascend.npu.aggregation import UBOE_PORT_DOWN
from nodeagent.drivers.ascend.npu.chip.events import ChipEvents, Listener, Port, code_of, port_of
from nodeagent.drivers.ascend.npu.chip.refusals import Refusals
from nodeagent.wire import Active

Derive = Callable[[str, set[str], int], tuple[set[str], bool]]
"""From a device, its active codes and the time to the codes that follow, and whether those are all."""


class ActiveCodes:
    """The codes of one chip. ``refused`` counts values that cannot be."""

    def __init__(
        self,
        chip: Chip,
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
        may stand in the place of one, and what an event is just reporting is left to it. Raises
        ``CallFailed``.
        """
        try:
            listed, full = self._chip.error_codes()
        except Nonsense:
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
        """Read the events of codes of which none has given the severity, and the parts on which each stands,
        which the list of codes does not name; only some libraries can say
        (``dcmiv2_get_device_current_fault_event``).
        """
        if not self._asks_events or not self._refusals.asks("events", slow_round=slow_round):
            return
        parts: dict[str, set[Port]] = {}
        try:
            for event in self._chip.current_events():
                self._listener.learn(code_of(event.event_id), event.severity)
                parts.setdefault(code_of(event.event_id), set()).add(port_of(event))
            self._events.stand(parts)
            self._refusals.note("events", refused=False)
        except NotSupported:
            self._asks_events = False
        except Nonsense:
            self.refused += 1
        except CallFailed:
            # All this stays unknown for now; the codes themselves were read.
            self._refusals.note("events", refused=True)
