"""What the threads of a worker share: the reports to the daemon (one lock, whole lines), and the source's
polls.

A write blocks while the daemon is behind: this back-pressure reaches the source. Only ``enqueue``, for the
callbacks of libraries, never blocks; it counts what it drops. A reply may be held until the next one is made,
because each written line wakes the daemon.
"""

import math
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from nodeagent import wire
from nodeagent.drivers.api import CallFailed, Reading
from nodeagent.wire import MAX_TEXT, SOURCE, Batch, Following, Poll

MAX_ENQUEUED = 1024
MAX_ASKED = 64

Reply = Callable[[int, str, int, Reading | CallFailed], None]
"""Takes the poll's id, the device, when the call began (see ``Outlet.reply``), and what came of it."""


class Outlet:
    """Implements ``drivers.api.Emit`` for the driver, and sends the worker's own reports.

    A reply is held while ``may_hold`` is true; its owner then calls ``flush`` or sends another reply.
    """

    def __init__(self, descriptor: int, may_hold: Callable[[], bool] = lambda: False) -> None:
        self._descriptor = descriptor
        self._may_hold = may_hold
        self._lock = threading.Lock()
        self._held = bytearray()
        self._enqueueing = threading.Lock()
        self._enqueued: queue.SimpleQueue[Batch] = queue.SimpleQueue()
        self._sender: threading.Thread | None = None
        self._dropped = 0

    def __call__(self, report: Following) -> None:
        self.send(report)

    def send(self, report: wire.Report) -> None:
        """Write what is held and the whole line. Without a reader the process ends: its daemon is gone."""
        line = wire.encode(report)
        with self._lock:
            self._held += line
            self._write()

    def flush(self) -> None:
        """Write what is held."""
        with self._lock:
            self._write()

    def enqueue(self, report: Batch) -> None:
        with self._enqueueing:
            if self._enqueued.qsize() >= MAX_ENQUEUED:
                self._dropped += 1
                return
            self._enqueued.put(report)
            if self._sender is None:
                self._sender = threading.Thread(target=self._send_enqueued, name="callbacks", daemon=True)
                self._sender.start()

    def reply(self, poll_id: int, device: str, begun_ns: int, outcome: Reading | CallFailed) -> None:
        """Answer for one device; ``begun_ns`` 0: no call was made."""
        now_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        begun_ns = begun_ns or now_ns
        took_ns = now_ns - begun_ns
        if isinstance(outcome, CallFailed):
            error = str(outcome)[:MAX_TEXT] or "failed without a reason"
            reply = wire.Reply(
                id=poll_id,
                device=device,
                begun_ns=begun_ns,
                took_ns=took_ns,
                error=error,
                errno=outcome.errno,
            )
        else:
            readings = dict(outcome.readings)
            if not math.isfinite(sum(readings.values())):
                # JSON cannot represent some of them; the driver should have refused them.
                readings = {name: value for name, value in readings.items() if math.isfinite(value)}
            if device == SOURCE and self._sender is not None:
                readings["dropped_callbacks_total"] = float(self._dropped)
            reply = wire.Reply(
                id=poll_id,
                device=device,
                begun_ns=begun_ns,
                took_ns=took_ns,
                active=None if outcome.active is None else tuple(outcome.active),
                complete=outcome.complete,
                unread=tuple(outcome.unread),
                readings=readings,
                measured=outcome.measured,
                holders=None if outcome.users is None else tuple(outcome.users),
                identity=outcome.identity,
                baseline=outcome.baseline,
            )
        line = wire.encode(reply)
        with self._lock:
            self._held += line
            if not self._may_hold():
                self._write()

    def _write(self) -> None:
        lines, self._held = memoryview(self._held), bytearray()
        try:
            while lines:
                lines = lines[os.write(self._descriptor, lines) :]
        except BrokenPipeError:
            os._exit(0)

    def _send_enqueued(self) -> None:
        while True:
            self.send(self._enqueued.get())


class SourceLink:
    """The polls of the source as a whole, on a descriptor; implements ``drivers.api.Link``."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._event = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._asked: deque[Poll] = deque(maxlen=MAX_ASKED)
        self._closed = False

    @property
    def closed(self) -> bool:
        return self._closed

    def fileno(self) -> int:
        return self._event

    def ask(self, poll: Poll) -> None:
        self._asked.append(poll)
        os.eventfd_write(self._event, 1)

    def close(self) -> None:
        self._closed = True
        os.eventfd_write(self._event, 1)

    def asked(self) -> Sequence[Poll]:
        try:
            os.eventfd_read(self._event)
        except BlockingIOError:
            return ()
        if self._closed:
            # The end stays readable: a reader that took it for a question would wait forever.
            os.eventfd_write(self._event, 1)
        polls = []
        while self._asked:
            polls.append(self._asked.popleft())
        return polls

    def answer(self, poll: Poll, reading: Reading, *, begun_ns: int) -> None:
        self._reply(poll.id, SOURCE, begun_ns, reading)
