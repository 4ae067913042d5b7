"""Fault events from the library's callback, and what they add to the next poll.

The callback runs on a thread of the library. It copies the event, queues it without waiting, and returns. An
event of an unknown type, assertion or chip, or without a code, is refused and counted. This module opens and
closes no fault.
"""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from nodeagent.core.model import Assertion
from nodeagent.drivers.ascend.abi import HANDLED_EVENT, FaultEvent, text
from nodeagent.wire import Batch, Signal

RESET_FINISHED: Final = "8C2FA009"
"""The chip has started: what was known of it belongs to the time before."""

SETTLES_NS: Final = 1_000_000_000
"""The list of active codes may lag behind the callback by this much (MindCluster waits as long)."""

ON_ITS_WAY_NS: Final = 250_000_000
"""So long an event may be on its way to its subscriber; a list read meanwhile must not overtake it."""

LIST_LEADS_S: Final = 0.1
"""The list may as well be ahead of the callback, by no more than this."""

MAX_CODES_REMEMBERED: Final = 4096
MAX_PARTS_REMEMBERED: Final = 256
"""So many parts are remembered of one code; no chip has as many ports."""
MAX_TEXT: Final = 256

_ASSERTIONS: Final = (Assertion.RECOVER, Assertion.OCCUR, Assertion.ONCE)
_NO_CODES: Final = (0, 0xFFFFFFFF)
_SEVERITIES: Final = range(4)

Port = tuple[int, int, int, int]
"""Node type and id, sub-node type and id: which part of the chip an event is about."""


def port_of(event: FaultEvent) -> Port:
    """Which part of its chip it is about."""
    return (event.node_type, event.node_id, event.sub_node_type, event.sub_node_id)


def code_of(event_id: int) -> str:
    """As the tables write it: eight hexadecimal digits."""
    return f"{event_id:08X}"


class ChipEvents:
    """What the events of one chip leave behind. Written by the callback, read by the thread that polls it.

    One fault comes in two ways, by its event and by the list, and counts once: the event reports it.
    """

    def __init__(self, device: str) -> None:
        self.device = device
        self.restarted = False
        self._noted = threading.Condition()
        self._last: dict[str, tuple[Assertion, int]] = {}
        self._present: dict[str, frozenset[Port]] = {}

    def note(self, code: str, assertion: Assertion, port: Port, at_ns: int) -> bool:
        """False for a recovery of one part while the code is active for another: the code is not over."""
        if code == RESET_FINISHED:
            self.restarted = True
        if assertion is Assertion.ONCE:
            return True
        with self._noted:
            if len(self._last) >= MAX_CODES_REMEMBERED:
                self.forget()
            present = self._present.get(code, frozenset()) - {port}
            if assertion is Assertion.OCCUR and len(present) < MAX_PARTS_REMEMBERED:
                present |= {port}
            self._present[code] = present
            if assertion is Assertion.RECOVER and present:
                return False
            self._last[code] = (assertion, at_ns)
            self._noted.notify_all()
        return True

    def expect(self, codes: Collection[str], limit_s: float) -> None:
        """Wait for the events of these codes, which were not listed before; they may be lost, though."""
        with self._noted:
            self._noted.wait_for(lambda: all(code in self._last for code in codes), limit_s)

    def settle(self, listed: Collection[str], now_ns: int) -> tuple[set[str], set[str]]:
        """The active codes: as listed, except for events so recent that the list may not have them yet; and
        those of them whose event may still be on its way.
        """
        active, on_their_way = set(listed), set[str]()
        with self._noted:
            for code, (assertion, at_ns) in tuple(self._last.items()):
                if now_ns - at_ns > SETTLES_NS:
                    del self._last[code]
                elif assertion is Assertion.OCCUR:
                    active.add(code)
                    on_their_way |= {code} if now_ns - at_ns <= ON_ITS_WAY_NS else set()
                else:
                    active.discard(code)
            for code in self._present.keys() - active:
                del self._present[code]
        return active, on_their_way

    def set_parts(self, parts: Mapping[str, Collection[Port]]) -> None:
        """The library reports these codes as active on these parts, including those whose events an earlier
        process received. A code with a very recent event is left as the event set it.
        """
        with self._noted:
            for code in parts.keys() - self._last.keys():
                self._present[code] = frozenset(parts[code])

    def forget(self) -> None:
        """Another part is in the place."""
        with self._noted:
            self._last.clear()
            self._present.clear()

    def ports(self, code: str) -> int:
        """On how many parts of the chip the code is known to be active."""
        return len(self._present.get(code, ()))


class Listener:
    """Gives each event to its chip and to ``enqueue``. ``refused`` counts what made no sense."""

    def __init__(self, enqueue: Callable[[Batch], None]) -> None:
        self._enqueue = enqueue
        self._chips: Mapping[int, ChipEvents] = {}
        self._severities: dict[str, int] = {}
        self.received = 0
        self.refused = 0

    def expect(self, chips: Mapping[int, ChipEvents]) -> None:
        """Expect events of these chips, by logic id; one that names another is refused."""
        self._chips = chips

    def severity(self, code: str) -> int | None:
        """The severity in the last event of this code, None without one."""
        return self._severities.get(code)

    def learn(self, code: str, severity: int) -> None:
        if severity in _SEVERITIES:
            if len(self._severities) >= MAX_CODES_REMEMBERED:
                self._severities.clear()
            self._severities[code] = severity

    def take(self, pointer: Any) -> None:
        """The callback. ``pointer`` is the library's, and gone when this returns."""
        self.received += 1
        event = pointer.contents if pointer else None
        if event is None or event.type != HANDLED_EVENT or not self._report(event.event_t):
            self.refused += 1

    def _report(self, event: FaultEvent) -> bool:
        chip = self._chips.get(event.deviceid)
        if chip is None or event.event_id in _NO_CODES or event.assertion >= len(_ASSERTIONS):
            return False
        code, assertion = code_of(event.event_id), _ASSERTIONS[event.assertion]
        now_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        self.learn(code, event.severity)
        if not chip.note(code, assertion, port_of(event), now_ns):
            return True
        signal = Signal(
            device=chip.device,
            code=code,
            assertion=assertion,
            severity=event.severity if event.severity in _SEVERITIES else None,
            first_ns=now_ns,
            last_ns=now_ns,
            evidence=_evidence(event),
        )
        self._enqueue(Batch(signals=(signal,)))
        return True


def _evidence(event: FaultEvent) -> dict[str, str]:
    fields = {
        "node_type": str(event.node_type),
        "node_id": str(event.node_id),
        "sub_node_type": str(event.sub_node_type),
        "sub_node_id": str(event.sub_node_id),
        "event_serial": str(event.event_serial_num),
        "notify_serial": str(event.notify_serial_num),
        "alarm_time_ms": str(event.alarm_raised_time),
        "event_name": text(event.event_name)[:MAX_TEXT],
        "additional_info": text(event.additional_info)[:MAX_TEXT],
    }
    return {name: value for name, value in fields.items() if value}
