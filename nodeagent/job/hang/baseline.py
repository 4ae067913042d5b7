"""What is usual of one value: its median while the run was healthy, over the newest two hours.

A value counts only after a delay, so that the beginning of a hang is not learned before the hang is found.
"""

from array import array
from bisect import bisect_left, insort
from collections import deque
from typing import Final

LONGEST: Final = 720
"""Two hours of samples, one each ten seconds."""

LEAST: Final = 6
"""Fewer values have no median."""


class Baseline:
    __slots__ = ("_delay", "_next", "_pending", "_ring", "_sorted")

    def __init__(self, delay: int) -> None:
        self._delay = delay
        self._pending = deque[float]()
        self._ring = array("d")
        self._next = 0
        self._sorted = array("d")

    def learn(self, value: float) -> None:
        self._pending.append(value)
        if len(self._pending) > self._delay:
            self._take(self._pending.popleft())

    def doubt(self) -> None:
        """What was not counted yet may be of a hang: it never will be."""
        self._pending.clear()

    def median(self) -> float | None:
        count = len(self._sorted)
        if count < LEAST:
            return None
        middle = count // 2
        return self._sorted[middle] if count % 2 else (self._sorted[middle - 1] + self._sorted[middle]) / 2

    def _take(self, value: float) -> None:
        if len(self._ring) < LONGEST:
            self._ring.append(value)
        else:
            self._sorted.pop(bisect_left(self._sorted, self._ring[self._next]))
            self._ring[self._next] = value
            self._next = (self._next + 1) % LONGEST
        insort(self._sorted, value)
