"""Calls that may wait for something other than the chip, made in a thread beside the chip's polls.

Whether a chip's network is well is found out over the network itself, and what a card's label says is asked
of its MCU: such calls of all chips may wait at once. One that does not come back costs its own answer, and
nobody is late by it. There is one call under way at most; it is made anew once it has come back.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class BackgroundCall(Generic[Answer]):
    """``ask`` is called by the thread alone, which begins with the first question; it raises nothing.
    ``nothing`` stands for the answer until there is one. ``is_waiting``: for an answer.
    ``what`` it asks is in the name of its thread.
    """

    def __init__(self, ask: Callable[[], Answer], nothing: Answer, device: str, what: str = "beside") -> None:
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
        """Nobody asks any more; a call that hangs is left alone."""
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
