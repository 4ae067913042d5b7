"""Follows the network interfaces in a thread of its own: each change at once, and all of them now and then.

The list is the truth: it is asked for at the start, once a minute, and at once where changes were lost.
What they mean is for whoever takes them.
"""

import os
import select
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from nodeagent.drivers.link.interface import Interface, Vanished
from nodeagent.drivers.link.netlink import LinkSocket, Overrun, list_interfaces

LIST_EACH_S: Final = 60.0


class Taker(Protocol):
    """Who is called on a change. All calls come from the follower's thread, but for the first
    ``interfaces_listed``.
    """

    def is_relevant(self, index: int) -> bool:
        """Whether the interface of this index is worth being read."""

    def interfaces_listed(self, interfaces: Mapping[int, Interface]) -> None:
        """These there are, and no others that are wanted."""

    def changed(self, changes: Sequence[Interface | Vanished]) -> None:
        """These interfaces have changed, in this order."""

    def report_due(self) -> float | None:
        """Report what has fallen due. The answer: in how many seconds something more will; None: nothing."""


class Follower:
    """``begin`` subscribes and lists, and then follows until ``end``. ``failed`` says why it stopped by
    itself.
    """

    def __init__(self, taker: Taker, receive_buffer_bytes: int, list_each_s: float = LIST_EACH_S) -> None:
        self.failed = ""
        self.overruns = 0
        self.changes = 0
        self.lists = 0
        self._taker = taker
        self._list_each_s = list_each_s
        self._socket = LinkSocket(taker.is_relevant, receive_buffer_bytes)
        self._end: Final = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._list_at_s = 0.0

    def begin(self) -> None:
        """Raises ``OSError``."""
        self._list()
        threading.Thread(target=self._run, name="netlink", daemon=True).start()

    def end(self) -> None:
        os.eventfd_write(self._end, 1)

    def _run(self) -> None:
        """The thread's boundary: where it fails, the next listing of ports says so, and the worker ends."""
        try:
            self._follow()
        except OSError as error:
            self.failed = f"netlink cannot be read: {error.strerror or error}"
        except Exception as error:  # noqa: BLE001  the boundary of a thread; it reports
            traceback.print_exc()
            self.failed = f"the reader of netlink failed: {error!r}"

    def _follow(self) -> None:
        waiting = select.poll()
        for descriptor in (self._socket.fileno(), self._end):
            waiting.register(descriptor, select.POLLIN)
        while True:
            due_s = self._taker.report_due()
            left_s = max(0.0, self._list_at_s - time.monotonic())
            ready = waiting.poll(1000 * (left_s if due_s is None else min(left_s, due_s)) + 1)
            if any(descriptor == self._end for descriptor, _ in ready):
                return
            try:
                changes = list(self._socket.changes())
            except Overrun:
                self.overruns += 1
                self._list()
                continue
            if changes:
                self.changes += len(changes)
                self._taker.changed(changes)
            if time.monotonic() >= self._list_at_s:
                self._list()

    def _list(self) -> None:
        self._list_at_s = time.monotonic() + self._list_each_s
        self._taker.interfaces_listed(list_interfaces(self._taker.is_relevant))
        self.lists += 1
