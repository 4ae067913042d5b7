"""Calls that may take long or are refused again and again: made in a thread of their own, or seldom.

The health of a chip's network is tested over the network, and a label is read from the card's MCU. Such calls
may wait on all chips at once, so they are made outside the polls, at most one at a time for each thread. A
call that never returns costs its own answer only.

The vendor's library writes a line to /var/log/nputools_*.log for each call that it answers with an error
(``gplog``). So a call that was refused several times in a row is made only in slow rounds until it succeeds.
"""

import threading
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Final, Generic, TypeVar

Answer = TypeVar("Answer")


class BackgroundCall(Generic[Answer]):
    """``ask`` is called by the thread alone, which begins with the first question; it raises nothing.
    ``nothing`` is the answer until there is one. ``is_waiting``: for an answer.
    ``what`` it asks is in the name of its thread.
    """

    def __init__(self, ask: Callable[[], Answer], nothing: Answer, device: str, what: str = "slow") -> None:
        self._ask = ask
        self._nothing = self._latest = nothing
        self._device = device
        self._what = what
        self._asked = threading.Semaphore(0)
        self._answered = threading.Event()
        self._answered.set()
        self._thread: threading.Thread | None = None
        self._is_over = False

    @property
    def is_waiting(self) -> bool:
        return not self._answered.is_set()

    def read(self, *, ask: bool) -> Answer:
        """The latest answer; nothing, once a question has not been answered by the time of the next."""
        if ask and self.is_waiting:
            self._latest = self._nothing
        elif ask:
            self._answered.clear()
            self._start()
            self._asked.release()
        return self._latest

    def wait(self, limit_s: float) -> None:
        """Wait at most so long for the answer to what was asked."""
        self._answered.wait(limit_s)

    def end(self) -> None:
        """Stop asking; a call that hangs is left alone."""
        self._is_over = True
        self._asked.release()

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._answer, name=f"{self._device} {self._what}", daemon=True
            )
            self._thread.start()

    def _answer(self) -> None:
        # Whose call is stuck is read from the names of threads in /proc.
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(self._device[:15])
        while self._asked.acquire() and not self._is_over:
            self._latest = self._ask()
            self._answered.set()


REFUSED_AFTER: Final = 3
"""Once, or twice, may be a glitch."""


class Refusals:
    """The calls that one chip refuses; a call is whatever its caller knows it by."""

    def __init__(self) -> None:
        self._in_a_row: dict[Hashable, int] = {}

    def asks(self, call: Hashable, *, slow_round: bool) -> bool:
        """Whether it is to be made now."""
        return slow_round or self._in_a_row.get(call, 0) < REFUSED_AFTER

    def note(self, call: Hashable, *, refused: bool) -> None:
        """Note how the call was answered."""
        if refused:
            self._in_a_row[call] = self._in_a_row.get(call, 0) + 1
        else:
            self._in_a_row.pop(call, None)

    def forget(self) -> None:
        """Forget all refusals: the chip was away."""
        self._in_a_row.clear()
