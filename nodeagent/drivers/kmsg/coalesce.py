"""Storms: the same fault a thousand times a second becomes one signal at once and one count a second.

The first signal of a key (device, code, assertion, trusted) passes at once and opens a window. What
follows in the window is only counted, and reported as one signal when the window ends; if there was any,
the next window begins.

Whenever anything is reported, everything counted so far is reported with it, in the order in which each was
last seen: what came last, the fault or its recovery, is reported last. So after each batch everything
read is reported, and the batch's cursor is exact: a crash repeats no signal and drops none.

Pure: the time is an argument; the caller decides which clock it is.
"""

from dataclasses import dataclass

from msgspec.structs import replace

from nodeagent.core.model import Assertion
from nodeagent.wire import Signal

WINDOW_NS = 1_000_000_000
MAX_KEYS = 256

Key = tuple[str, str, Assertion, bool]


@dataclass(slots=True)
class _Window:
    ends_ns: int
    counted: Signal | None = None


class Coalescer:
    """Bounded: of ``max_keys`` open windows, one more closes them all, after reporting what they counted."""

    def __init__(self, window_ns: int = WINDOW_NS, max_keys: int = MAX_KEYS) -> None:
        self._window_ns = window_ns
        self._max_keys = max_keys
        self._windows: dict[Key, _Window] = {}
        self._pending = 0

    @property
    def pending(self) -> bool:
        """Whether something is counted that no batch has reported."""
        return self._pending > 0

    @property
    def due_ns(self) -> int | None:
        """When ``expire`` has something to do."""
        return min((window.ends_ns for window in self._windows.values() if window.counted), default=None)

    def add(self, signal: Signal, now_ns: int) -> list[Signal]:
        """What is to be reported now: nothing, or the counted ones and then ``signal``."""
        key = (signal.device, signal.code, signal.assertion, signal.trusted)
        window = self._windows.get(key)
        if window is not None and now_ns < window.ends_ns:
            self._count(window, signal)
            return []
        counted = self.flush(now_ns)
        if len(self._windows) >= self._max_keys:
            self._windows = {k: w for k, w in self._windows.items() if now_ns < w.ends_ns}
        if len(self._windows) >= self._max_keys:
            self._windows.clear()
        self._windows[key] = _Window(now_ns + self._window_ns)
        return [*counted, signal]

    def expire(self, now_ns: int) -> list[Signal]:
        """Everything counted, if any window that counted has ended; otherwise nothing."""
        due_ns = self.due_ns
        return self.flush(now_ns) if due_ns is not None and due_ns <= now_ns else []

    def flush(self, now_ns: int) -> list[Signal]:
        """Everything counted, whatever the time. A window that had counted begins again."""
        if not self._pending:
            return []
        counted = []
        for window in self._windows.values():
            if window.counted is not None:
                counted.append(window.counted)
                window.counted = None
                window.ends_ns = now_ns + self._window_ns
        self._pending = 0
        counted.sort(key=lambda signal: signal.last_ns)
        return counted

    def reset(self) -> None:
        """Forget the windows: the next signal is a first occurrence again. Only when nothing is pending."""
        assert not self._pending
        self._windows.clear()

    def _count(self, window: _Window, signal: Signal) -> None:
        counted = window.counted
        window.counted = signal if counted is None else _merged(counted, signal)
        self._pending += 1


def _merged(earlier: Signal, later: Signal) -> Signal:
    """One signal for both, with the evidence of the later."""
    return replace(later, count=earlier.count + later.count, first_ns=earlier.first_ns)
