"""Xids as they happen: one event set and one thread for each GPU, so that a GPU that hangs delays no other.

The thread hands each event over and never waits for the daemon. The same Xid a thousand times a second
becomes one signal at once and one count a second. A lost event is restored by the polls, and the kernel log
has the same Xids. An event belongs to the device that it names, whichever set delivered it. It belongs to an
instance only if the GPU is in MIG mode.
"""

import ctypes
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import pynvml

from nodeagent.drivers.nvidia.nvml.calls import STALE, UNSUPPORTED, name_of
from nodeagent.wire import Signal

WAIT_MS: Final = 5000
WINDOW_NS: Final = 1_000_000_000
LISTEN_LIMIT_S: Final = 1.0
AGAIN_NS: Final = 5_000_000_000
REFUSED_AGAIN_NS: Final = 600_000_000_000
"""After a failure, or once they were refused, the events are listened to again when this has passed."""

MAX_XID: Final = 9999
NO_INSTANCE: Final = 0xFFFFFFFF

NVLINK_XIDS: Final = range(144, 151)
"""For these NVML gives the number alone; only the kernel log shows whether it was fatal."""

UNSPECIFIED: Final = "unspecified"

Report = Callable[[Signal], None]

_Key = tuple[str, str]
"""Device and code: each MIG instance counts for itself."""


class Storm:
    """Counts what repeats within a second of being reported. Pure: the time is an argument."""

    def __init__(self) -> None:
        self._ends_ns: dict[_Key, int] = {}
        self._counted: dict[_Key, Signal] = {}

    def add(self, signal: Signal, now_ns: int) -> list[Signal]:
        """What to report now."""
        due, key = self.due(now_ns), (signal.device, signal.code)
        if now_ns < self._ends_ns.get(key, 0):
            counted = self._counted.get(key, signal)
            count = counted.count + 1 if key in self._counted else 1
            self._counted[key] = _with(signal, count, counted.first_ns)
            return due
        self._ends_ns[key] = now_ns + WINDOW_NS
        return [*due, signal]

    def due(self, now_ns: int) -> list[Signal]:
        """What was counted in windows that have ended; each starts again."""
        over = [key for key, ends_ns in self._ends_ns.items() if ends_ns <= now_ns]
        due = []
        for key in over:
            if (counted := self._counted.pop(key, None)) is not None:
                due.append(counted)
                self._ends_ns[key] = now_ns + WINDOW_NS
            else:
                del self._ends_ns[key]
        return due

    def rest(self) -> list[Signal]:
        """What was counted and is not reported yet."""
        counted, self._counted = list(self._counted.values()), {}
        return counted

    def patience_ms(self, now_ns: int) -> int:
        """How long nothing is due."""
        if not self._counted:
            return WAIT_MS
        first_ns = min(self._ends_ns[key] for key in self._counted)
        return max(1, min(WAIT_MS, (first_ns - now_ns) // 1_000_000 + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class EventOwner:
    """A GPU as its events see it. ``known_by_state``: whether polls report that Xid; ``is_divided``: MIG."""

    device: str
    known_by_state: Callable[[int], bool]
    is_divided: Callable[[], bool]


class Doubles:
    """Events that come by several sets, which those of the GPUs of the node share. No real driver sends
    any.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: dict[_Key, tuple[int, str]] = {}

    def has(self, key: _Key, by: str, now_ns: int) -> bool:
        """Whether the same event came by another GPU's set a moment ago. ``by`` is the GPU of this set."""
        with self._lock:
            at_ns, before = self._last.get(key, (0, by))
            if before != by and now_ns - at_ns < WINDOW_NS:
                return True
            self._last[key] = now_ns, by
            return False


class GpuEvents:
    """The events of one GPU. ``heal`` is called at each poll, and listens again where that has ended.

    ``owner_of`` maps another handle to its GPU, None: none of this node.
    """

    def __init__(
        self,
        owner: EventOwner,
        handle: Any,
        report: Report,
        owner_of: Callable[[Any], EventOwner | None],
        doubles: Doubles,
    ) -> None:
        self.refused = 0
        self.supported = True
        """False while NVML reports that this GPU sends no events: then the kernel log alone has its Xids."""
        self.refusal: int | None = None
        """NVML's answer by which they are not listened to; None: they are."""
        self._device = owner.device
        self._owner = owner
        self._handle = handle
        self._report = report
        self._owner_of = owner_of
        self._doubles = doubles
        self._thread: threading.Thread | None = None
        self._begun = threading.Event()
        self._again_ns = 0
        self._ended = False
        self._said = 0

    def heal(self) -> None:
        """Listen, unless that goes on already, cannot be, or failed a moment ago.

        Returns once it listens, so that what happens from then on is reported by an event, and what happened
        before by the state that is read next.
        """
        alive = self._thread is not None and self._thread.is_alive()
        if alive or self._ended or _now_ns() < self._again_ns:
            return
        self._again_ns = _now_ns() + (AGAIN_NS if self.supported else REFUSED_AGAIN_NS)
        self._begun.clear()
        self._thread = threading.Thread(target=self._listen, name=f"{self._device} Xids", daemon=True)
        self._thread.start()
        self._begun.wait(LISTEN_LIMIT_S)

    def end(self) -> None:
        """Listen no more: another GPU has this place from now on. A thread that waits notices at its next
        look.
        """
        self._ended = True

    def _listen(self) -> None:
        try:
            events = pynvml.nvmlEventSetCreate()
            try:
                pynvml.nvmlDeviceRegisterEvents(self._handle, pynvml.nvmlEventTypeXidCriticalError, events)
                self.supported, self.refusal = True, None
                self._begun.set()
                self._wait(events)
            finally:
                pynvml.nvmlEventSetFree(events)
        except pynvml.NVMLError as error:
            self.refusal = int(error.value)
            self.supported = self.refusal not in UNSUPPORTED
            if error.value not in STALE and error.value != self._said:
                self._said = error.value
                print(
                    f"{self._device}: no events: NVML answers {name_of(error.value)}",
                    file=sys.stderr,
                    flush=True,
                )
        finally:
            self._begun.set()

    def _wait(self, events: Any) -> None:
        storm = Storm()
        try:
            while not self._ended:
                self._report_all(self._next(events, storm))
        finally:
            self._report_all(storm.rest())

    def _next(self, events: Any, storm: Storm) -> list[Signal]:
        """What is to be reported once an event has come, or none for as long as nothing is due."""
        try:
            data = pynvml.nvmlEventSetWait_v2(events, storm.patience_ms(_now_ns()))
        except pynvml.NVMLError as error:
            if error.value != pynvml.NVML_ERROR_TIMEOUT:
                raise
            return storm.due(_now_ns())
        signal = self._signal(data)
        return storm.add(signal, _now_ns()) if signal is not None else storm.due(_now_ns())

    def _report_all(self, signals: Iterable[Signal]) -> None:
        for each in signals:
            if not self._ended:
                self._report(each)

    def _signal(self, data: Any) -> Signal | None:
        if data.eventType != pynvml.nvmlEventTypeXidCriticalError:
            return None
        xid = int(data.eventData)
        owner = self._owner if _is_same(data.device, self._handle) else self._owner_of(data.device)
        if owner is None or not 0 < xid <= MAX_XID:
            self.refused += 1
            return None
        if owner.known_by_state(xid):
            return None
        now_ns = _now_ns()
        evidence = {"xid": str(xid)}
        device = owner.device
        # Without MIG both ids are NO_INSTANCE (nvmlEventData_t in nvml.h); a library may leave them 0.
        if data.gpuInstanceId != NO_INSTANCE and owner.is_divided():
            evidence["gpu_instance"] = str(data.gpuInstanceId)
            device = f"{device}/gi{data.gpuInstanceId}"
            if data.computeInstanceId != NO_INSTANCE:
                evidence["compute_instance"] = str(data.computeInstanceId)
        code = code_of(xid)
        if self._doubles.has((device, code), self._device, now_ns):
            return None
        return Signal(device=device, code=code, first_ns=now_ns, last_ns=now_ns, evidence=evidence)


def _is_same(one: Any, other: Any) -> bool:
    """Whether these handles are one: they are pointers."""
    return ctypes.cast(one, ctypes.c_void_p).value == ctypes.cast(other, ctypes.c_void_p).value


def code_of(xid: int) -> str:
    """The code of an Xid of which the number is all that is known."""
    return f"XID_{xid}.{UNSPECIFIED}" if xid in NVLINK_XIDS else f"XID_{xid}"


def _with(signal: Signal, count: int, first_ns: int) -> Signal:
    return Signal(
        device=signal.device,
        code=signal.code,
        count=count,
        first_ns=first_ns,
        last_ns=signal.last_ns,
        evidence=signal.evidence,
    )


def _now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
