"""The driver ``unifiedbus``: the UnifiedBus switches of an Atlas A3, read by liblingqu-dcmi.so.

Devices are the switch chips, ``ub<chip>``, and each port that has had a fault, ``ub<chip>/<port>``. The
hundreds of ports without faults are not listed. Events arrive by the library's callback; an event of a new
port waits until the next poll of the source has listed the port. All faults are read at the start, every five
minutes, and at once for a new port; this restores events that were lost on the way from the library. Events
that the library itself has missed can be read only by another process: so the driver asks for a new one every
ten minutes, and the daemon starts one as soon as the kernel log reports a loss (``events_lost_code`` in
``vendors``).

A code is MindCluster's text ``[alarm,fault,peer,port]``: the alarm in eight hexadecimal digits; the fault in
decimal, or ``na`` for a port that is down; the device at the other end of the port; and always ``na`` for the
port, which the device name has. A fault of a whole chip has all ones in the sixteen bits of its port, and no
device at the other end. The driver judges nothing: the tables do.
"""

import ctypes
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from ctypes import POINTER, byref, c_uint
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nodeagent.core.model import Assertion, Kind
from nodeagent.drivers.api import CallFailed, Driver, Emit, Population, Reading, Unavailable
from nodeagent.drivers.ascend.abi import SwitchCallback, SwitchEvent, SwitchFilter, text
from nodeagent.drivers.ascend.dcmi_calls import (
    SYMBOL_MISSING,
    Function,
    ImpossibleValue,
    VendorCallFailed,
    bind,
    switch_failure,
)
from nodeagent.drivers.ascend.events import ChipEvents, Port
from nodeagent.drivers.ascend.opening import load
from nodeagent.wire import MAX_DEVICES, Active, Batch, CaughtUp, Configure, Device, Pattern, Renew, Signal

WHOLE_CHIP: Final = 0xFFFF
NO_FAULT_NUMBER: Final = 0xFFFFFFFF
PORTS: Final = 48

NOT_APPLICABLE: Final = "na"
_PEERS: Final = {0: "cpu", 1: "npu", 2: "L2"}
_ASSERTIONS: Final = {0: Assertion.RECOVER, 1: Assertion.OCCUR}


@dataclass(frozen=True, slots=True, kw_only=True)
class UnifiedBusFault:
    """The library keeps one fault of a code for a port, and one for a chip."""

    device: str
    code: str
    assertion: Assertion


def read_fault(event: SwitchEvent, chips: int) -> UnifiedBusFault | None:
    """None for what cannot be: a chip or port there is none of, no alarm, an unknown assertion."""
    chip, port = int(event.switchChipid), int(event.switchPortid)
    assertion = _ASSERTIONS.get(event.assertion)
    is_place = chip < chips and (port < PORTS or port == WHOLE_CHIP)
    if assertion is None or not is_place or event.eventType in (0, 0xFFFFFFFF):
        return None
    whole = port == WHOLE_CHIP
    peer = NOT_APPLICABLE if whole else _PEERS.get(event.peerportDevice, NOT_APPLICABLE)
    number = NOT_APPLICABLE if event.subType == NO_FAULT_NUMBER else str(event.subType)
    return UnifiedBusFault(
        device=f"ub{chip}" if whole else f"ub{chip}/{port}",
        code=f"[0x{event.eventType:08x},{number},{peer},{NOT_APPLICABLE}]",
        assertion=assertion,
    )


def signal_of(fault: UnifiedBusFault, event: SwitchEvent, now_ns: int) -> Signal:
    """Its signal, with the other fields of the event as evidence."""
    evidence = {
        "peer_device": str(event.peerportDevice),
        "peer_port": str(event.peerportId),
        "severity": str(event.severity),
        "event_serial": str(event.eventSerialNum),
        "notify_serial": str(event.notifySerialNum),
        "alarm_time": str(event.alarmRaisedTime),
        "additional_info": text(event.additionalInfo),
    }
    return Signal(
        device=fault.device,
        code=fault.code,
        assertion=fault.assertion,
        first_ns=now_ns,
        last_ns=now_ns,
        evidence={name: value for name, value in evidence.items() if value},
    )


LIBRARY_NAME: Final = "liblingqu-dcmi.so"

MAX_FAULTS: Final = 1024
"""Seven chips with 48 ports make 343 places; MindCluster's 128 could be filled by one bad plane."""

DEVICE_NODE: Final = Path("/dev/lqdcmi_pcidev")
"""Only a machine with such switches has it; the library may be installed on any."""

_DEVICE_OPEN: Final = -8004
_INITIALISED_TWICE: Final = -8017

PROTOTYPES: Final[dict[str, tuple[Any, ...]]] = {
    "lq_dcmi_init": (),
    "lq_dcmi_subscribe_fault_event": (SwitchFilter, SwitchCallback),
    "lq_dcmi_get_fault_info": (c_uint, POINTER(c_uint), POINTER(SwitchEvent)),
}


class SwitchLibrary:
    """Opened and initialised."""

    def __init__(self, handle: ctypes.CDLL) -> None:
        """Raises ``Unavailable``; ``absent`` where the machine has no such switches."""
        self._functions: dict[str, Function] = {}
        for symbol, prototype in PROTOTYPES.items():
            if (function := bind(handle, symbol, prototype)) is not None:
                self._functions[symbol] = function
        self._callback: Any = None
        self._faults = (SwitchEvent * MAX_FAULTS)()
        try:
            self._call("lq_dcmi_init")
        except VendorCallFailed as error:
            if error.status != _INITIALISED_TWICE:
                absent = error.status == _DEVICE_OPEN and not DEVICE_NODE.exists()
                raise Unavailable(str(error), errno=error.errno, absent=absent) from error

    def subscribe(self, handler: Callable[[Any], None]) -> None:
        """Have every event given to ``handler`` on the library's thread, for good. Once more only if it
        failed, with the same handler. Raises ``CallFailed``.
        """
        self._callback = self._callback or SwitchCallback(handler)
        self._call("lq_dcmi_subscribe_fault_event", SwitchFilter(), self._callback)

    def faults(self) -> tuple[Sequence[SwitchEvent], bool]:
        """All faults there are, and whether the list was filled to its end. Raises ``CallFailed``."""
        count = c_uint(0xFFFFFFFF)
        self._call("lq_dcmi_get_fault_info", MAX_FAULTS, byref(count), self._faults)
        if count.value > MAX_FAULTS:
            raise ImpossibleValue(
                f"the number of switch faults is given as {count.value}; at most {MAX_FAULTS} fit"
            )
        return self._faults[: count.value], count.value == MAX_FAULTS

    def _call(self, symbol: str, *arguments: Any) -> None:
        function = self._functions.get(symbol)
        if function is None:
            raise switch_failure(symbol, SYMBOL_MISSING)
        if status := function(*arguments):
            raise switch_failure(symbol, status)


def open_library(configured: str = "") -> SwitchLibrary:
    """Raises ``Unavailable``."""
    return SwitchLibrary(load(LIBRARY_NAME, configured))


CHIPS: Final = 7
"""Switch chips in an Atlas A3."""

QUERY_EACH_NS: Final = 300_000_000_000
RENEW_EACH_NS: Final = 600_000_000_000
"""The kernel is asked for all faults only when a process begins; from then on it sends events, and drops one
where any process's ring is full ("[lqdcmi]Queue is full"; lqdrv/kernel/pci-dev.c, ``write_shared_memory``).
"""

CAUGHT_UP_LIMIT_S: Final = 2.0
THE_WHOLE: Final[Port] = (0, 0, 0, 0)
"""No part of a switch chip or a port is distinguished."""

MAX_WAITING: Final = 64
"""Events of one port that is not listed yet."""


def create(configure: Configure, emit: Emit) -> Driver:
    """``config`` keys: ``library``."""
    return SwitchDriver(library=str(configure.config.get("library", "")), emit=emit)


class SwitchDriver:
    """The chips are there as long as the library is; ports are added and stay."""

    def __init__(
        self,
        *,
        library: str,
        emit: Emit,
        query_each_ns: int = QUERY_EACH_NS,
        renew_each_ns: int = RENEW_EACH_NS,
    ) -> None:
        self._configured = library
        self._query_each_ns = query_each_ns
        self._renew_each_ns = renew_each_ns
        self._opened_ns = 0
        self._emit = emit
        self._library: SwitchLibrary | None = None
        self._events: dict[str, ChipEvents] = {}
        self._listed: dict[str, None] = {}
        self._queried_ns: dict[str, int] = {}
        self._waiting: dict[str, deque[Signal]] = {}
        self._polled: set[str] = set()
        self._reporting = threading.Lock()
        self._call_lock = threading.Lock()
        self._answer: tuple[int, Mapping[str, set[str]], bool] | None = None
        self._looked_ns: int | None = None
        self._listings = 0
        self._tried_to_report_all = threading.Event()
        self._has_reported_all = False
        self._why_unknown = "the faults of the switches are not known yet"
        self._subscribed = False
        self._refused = 0
        self._received = 0

    def open(self) -> None:
        self._opened_ns = _now_ns()
        self._library = open_library(self._configured)
        self._list([f"ub{chip}" for chip in range(CHIPS)])

    def devices(self) -> Population:
        self._listings += 1
        # What comes after this is reported by events, so that what was there before is looked for after it.
        has_subscribed = self._listings > 1 and not self._subscribed and self._subscribe()
        now_ns = _now_ns()
        if has_subscribed or self._is_due(self._looked_ns, now_ns):
            self._look(now_ns)
        if self._listings > 1 and not self._has_reported_all:
            # Only now does the daemon know the devices.
            self._report_all(now_ns)
        self._list(tuple(self._waiting))
        if self._has_reported_all and now_ns - self._opened_ns >= self._renew_each_ns:
            # Ports whose faults are over are listed by no other process.
            self._emit(Renew(reason="events may have been lost since this process began", lists="any"))
        readings = {
            "events_total": self._received,
            "refused_values_total": self._refused,
            "subscribed": float(self._subscribed),
        }
        return Population(devices=tuple(_device(name) for name in self._listed), readings=readings)

    def poll(self, device: str) -> Reading:
        """The codes, where it is time to ask for them; else only that the library is there.

        Raises ``CallFailed`` also until all faults were reported once: what an earlier life opened on a port
        that is not listed may still be active.
        """
        self._tried_to_report_all.wait(CAUGHT_UP_LIMIT_S)
        if not self._has_reported_all:
            raise CallFailed(self._why_unknown)
        begun_ns = _now_ns()
        self._report_waiting(device)
        if not self._is_due(self._queried_ns.get(device), begun_ns):
            return Reading()
        codes, full = self._faults_since(begun_ns)
        self._queried_ns[device] = begun_ns
        active, _ = self._events[device].settle(codes.get(device, ()), _now_ns())
        return Reading(active=tuple(Active(code=code) for code in sorted(active)), complete=not full)

    def reload(self, patterns: Sequence[Pattern]) -> None:
        """It has no patterns."""

    def close(self) -> None:
        """The process ends next, and with it the subscription."""

    # ------------------------------------------------------------------ queries

    def _is_due(self, asked_ns: int | None, now_ns: int) -> bool:
        """Without events there is nothing but asking, each time."""
        return asked_ns is None or not self._subscribed or now_ns - asked_ns >= self._query_each_ns

    def _faults_since(self, begun_ns: int) -> tuple[Mapping[str, set[str]], bool]:
        """The faulty devices with their codes, asked for after ``begun_ns``; one call serves all threads that
        wait.

        Raises ``CallFailed``.
        """
        if self._library is None:
            raise CallFailed("the library is not open")
        with self._call_lock:
            if self._answer is None or self._answer[0] < begun_ns:
                asked_ns = _now_ns()
                events, full = self._library.faults()
                found: dict[str, set[str]] = {}
                for fault in map(self._understood, events):
                    if fault is not None and fault.assertion is not Assertion.RECOVER:
                        found.setdefault(fault.device, set()).add(fault.code)
                self._answer = (asked_ns, found, full)
            return self._answer[1], self._answer[2]

    def _look(self, now_ns: int) -> None:
        """List the ports that are faulty. Where that fails it is tried again at the next poll."""
        try:
            found, _ = self._faults_since(now_ns)
        except CallFailed:
            # The poll of each device reports the reason as long as it lasts.
            return
        self._looked_ns = now_ns
        self._list(tuple(found))

    def _subscribe(self) -> bool:
        """Tried again at every poll of the source."""
        try:
            if self._library is not None:
                self._library.subscribe(self._take)
                self._subscribed = True
        except CallFailed as error:
            if self._listings == 2:
                print(f"no events of the switches, only polls: {error}", file=sys.stderr, flush=True)
        return self._subscribed

    def _report_all(self, now_ns: int) -> None:
        """All faults at once, which closes what an earlier life opened on a port that is now in order. Where
        that fails it is tried again at the next poll.
        """
        try:
            found, full = self._faults_since(now_ns)
        except CallFailed as error:
            self._why_unknown = f"the faults of the switches are not known: {error}"
        else:
            codes = sorted({code for codes in found.values() for code in codes})
            if not full:
                self._emit(CaughtUp(begun_ns=now_ns, active=tuple(Active(code=code) for code in codes)))
            self._has_reported_all = True
        self._tried_to_report_all.set()

    def _list(self, names: Sequence[str]) -> None:
        """Beyond the bound a port's faults are refused; the chips are listed in any case."""
        for name in names:
            if name not in self._listed and len(self._listed) < MAX_DEVICES:
                self._events.setdefault(name, ChipEvents(name))
                self._listed[name] = None

    # ------------------------------------------------------------------ events

    def _take(self, pointer: Any) -> None:
        """The callback, on the library's thread; ``pointer`` is gone when it returns."""
        self._received += 1
        event: SwitchEvent | None = pointer.contents if pointer else None
        fault = None if event is None else self._understood(event)
        if event is None or fault is None:
            return
        now_ns = _now_ns()
        signal = signal_of(fault, event, now_ns)
        if fault.device not in self._events and len(self._events) >= MAX_DEVICES:
            self._refused += 1
            return
        known = self._events.setdefault(fault.device, ChipEvents(fault.device))
        if not known.note(fault.code, fault.assertion, THE_WHOLE, now_ns):
            return
        with self._reporting:
            if fault.device in self._polled:
                self._emit.enqueue(Batch(signals=(signal,)))
            else:
                self._waiting.setdefault(fault.device, deque(maxlen=MAX_WAITING)).append(signal)

    def _report_waiting(self, device: str) -> None:
        """What came before the device was listed; it is polled, so that the daemon knows it now.

        What comes meanwhile is reported behind it, so that a recovery never overtakes its fault.
        """
        while True:
            with self._reporting:
                waiting = self._waiting.pop(device, ())
                if not waiting:
                    self._polled.add(device)
                    return
            for signal in waiting:
                self._emit(Batch(signals=(signal,)))

    def _understood(self, event: SwitchEvent) -> UnifiedBusFault | None:
        fault = read_fault(event, CHIPS)
        if fault is None:
            self._refused += 1
        return fault


def _device(name: str) -> Device:
    return Device(device=name, kind=Kind.UNIFIEDBUS, vendor="ascend")


def _now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
