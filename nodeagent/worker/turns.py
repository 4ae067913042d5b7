"""Turns: of a worker's threads one polls at a time, for as long as polls are quick.

Threads that poll at once fight over the interpreter with every call into their library, which costs more
than the calls. A turn that lasts too long holds nobody up: a call that hangs is the daemon's to judge, and
those who wait go round it, again one after the other. It orders nobody and knows no device.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

TURN_LIMIT_S: Final = 0.005
"""Longer than a poll computes; one that takes longer waits for its device, and others may go on meanwhile."""


class Turns:
    """``limit_s`` is how long a turn holds up others."""

    def __init__(self, limit_s: float = TURN_LIMIT_S) -> None:
        self._limit_s = limit_s
        self._turn = threading.Lock()
        self._counting = threading.Lock()
        self._waiting = 0

    @property
    def awaited(self) -> bool:
        """Whether another thread waits for its turn; it will have it soon, whatever this one does."""
        return self._waiting > 0

    @contextmanager
    def one(self) -> Iterator[None]:
        """Waits for the turn, has it, gives it on."""
        with self._counting:
            self._waiting += 1
        turn = self._await()
        with self._counting:
            self._waiting -= 1
        try:
            yield
        finally:
            turn.release()

    def _await(self) -> threading.Lock:
        while True:
            turn = self._turn
            if turn.acquire(timeout=self._limit_s):
                return turn
            with self._counting:
                if self._turn is turn:
                    # Whoever has it gives it back to nobody: the others have a new one.
                    self._turn = threading.Lock()
