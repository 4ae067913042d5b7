"""The threads that poll the devices of a worker: one makes all polls, one after the other, as long as they
are quick.

With a thread for each device every poll would wake a thread, and all of them would compete for the
interpreter at each call into the library, which costs more than the calls. If a poll takes too long, another
thread continues with the next one. The waiting thread gets the name of its device, so that the daemon sees in
/proc which call hangs. No call is given up here; the daemon decides that.
"""

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

QUICK_S: Final = 0.01
"""Longer than a poll computes, also where other processes keep it from a processor for a while."""

MAX_THREAD_NAME: Final = 15
"""TASK_COMM_LEN of the kernel (include/linux/sched.h), less the zero at the end."""


class Pollers:
    """``make`` makes one poll, of a device for an id, and raises nothing. ``flush`` sends what it has held
    back, as it may do while there ``is_more``. ``quick_s`` is how long a poll may hold up others.
    """

    def __init__(
        self, make: Callable[[int, str], None], flush: Callable[[], None], quick_s: float = QUICK_S
    ) -> None:
        self._make = make
        self._flush = flush
        self._quick_s = quick_s
        self._lock = threading.Lock()
        self._asked: deque[tuple[int, str]] = deque()
        self._at_work: _Poller | None = None
        self._threads = 0
        self._idle: set[_Poller] = set()

    @property
    def is_more(self) -> bool:
        """Whether another poll follows, or ``flush``, whatever becomes of the one that is made now."""
        return bool(self._asked)

    def suffice_for(self, devices: int) -> None:
        """Have a thread for each of so many devices, should the polls of all hang, and one that goes on."""
        with self._lock:
            while self._threads <= devices:
                self._idle.add(_Poller(self._work))
                self._threads += 1

    def ask(self, poll_id: int, devices: Iterable[str]) -> None:
        """Have these polled, in this order, each after it has answered what was asked before.

        ``relieve`` must be called until it returns None.
        """
        with self._lock:
            self._asked.extend((poll_id, device) for device in devices)
            self._at_work = self._at_work or self._idle.pop()
            self._at_work.wake()

    def relieve(self) -> float | None:
        """Let another thread go on if the poll that is made takes too long.

        The answer is in how many seconds to call this again; None: not before the next ``ask``.
        """
        with self._lock:
            slow = self._at_work
            if slow is None or slow.device is None:
                return self._quick_s if self._asked else None
            left_s = slow.since_s + self._quick_s - time.monotonic()
            if left_s > 0:
                return left_s
            slow.bear_name_of_device()
            self._at_work = self._idle.pop()
            self._at_work.wake()
            return self._quick_s

    def _work(self, poller: "_Poller") -> None:
        # The thread that worked before may wait for long, and hold replies of others.
        self._flush()
        while (asked := self._next(poller)) is not None:
            self._make(*asked)

    def _next(self, poller: "_Poller") -> tuple[int, str] | None:
        """None: nothing is asked, or another thread is at work."""
        with self._lock:
            poller.device = None
            if poller is not self._at_work:
                self._idle.add(poller)
                return None
            if not self._asked:
                return None
            poll_id, device = self._asked.popleft()
            poller.device, poller.since_s = device, time.monotonic()
            return poll_id, device


class _Poller:
    """One thread. ``device`` is what it polls, since ``since_s`` of the monotonic clock."""

    def __init__(self, work: Callable[["_Poller"], None]) -> None:
        self.device: str | None = None
        self.since_s = 0.0
        self._work = work
        self._woken: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="poller", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Once too often does no harm."""
        self._woken.put(None)

    def bear_name_of_device(self) -> None:
        """From any thread. One that has ended bears none."""
        if self._thread.native_id is not None and self.device is not None:
            with suppress(FileNotFoundError):
                name_thread(self._thread.native_id, self.device)

    def _run(self) -> None:
        name_thread(threading.get_native_id(), "poller")
        while True:
            self._woken.get()
            self._work(self)


def name_thread(native_id: int, name: str) -> None:
    """A thread of this process, as others see it in /proc: the daemon reads there whose call is stuck."""
    Path(f"/proc/self/task/{native_id}/comm").write_text(name[:MAX_THREAD_NAME])
