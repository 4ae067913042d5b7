"""The refusal of a call: a gRPC status and a reason that a person can act on."""

import time
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Final

MAX_REFUSALS: Final = 60
REFUSALS_WINDOW_S: Final = 60.0


class Status(Enum):
    """The gRPC status codes in use, by number, so that nothing but the server needs gRPC."""

    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    UNAVAILABLE = 14


class Refusal(Exception):
    """Ends the call with ``status``; ``reason`` names the field or condition and what would be right.

    ``retry_after_s`` is when the same may succeed, where that is known.
    """

    def __init__(self, status: Status, reason: str, retry_after_s: float | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.retry_after_s = retry_after_s


class RefusalLimit:
    """So many refusals in a window are logged, so that refused calls cannot fill a log."""

    def __init__(
        self,
        most: int = MAX_REFUSALS,
        window_s: float = REFUSALS_WINDOW_S,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most = most
        self._window_s = window_s
        self._now_s = now_s
        self._written: deque[float] = deque()
        self._unwritten = 0

    def admit(self) -> int | None:
        """None: do not write this one. Else how many before it were not written."""
        now = self._now_s()
        while self._written and self._written[0] <= now - self._window_s:
            self._written.popleft()
        if len(self._written) >= self._most:
            self._unwritten += 1
            return None
        self._written.append(now)
        unwritten, self._unwritten = self._unwritten, 0
        return unwritten
