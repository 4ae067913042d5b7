"""Readings whose call may wait for something other than the chip, asked in a thread beside the chip's polls.

Whether a chip's network is well is found out over the network itself: during an outage such calls of all
chips may wait at once. One that does not come back costs its own reading, and nobody is late by it. A chip
has one such thread, and one call under way at most; it is asked anew once it has answered.
"""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from nodeagent.drivers.ascend.telemetry import Telemetry

NOTHING: Final[Mapping[str, float]] = {}


class Beside:
    """``telemetry`` is used by the thread alone, which begins with the first question. ``is_waiting``: for an
    answer.
    """

    def __init__(self, telemetry: Telemetry, device: str) -> None:
        self._telemetry = telemetry
        self._device = device
        self._asked = threading.Semaphore(0)
        self.is_waiting = False
        self._told = NOTHING
        self._thread: threading.Thread | None = None
        self._is_over = False

    @property
    def refused(self) -> int:
        return self._telemetry.refused

    def read(self, *, ask: bool) -> Mapping[str, float]:
        """What was told last; nothing, once a question has not been answered by the time of the next."""
        if ask and self.is_waiting:
            self._told = NOTHING
        elif ask:
            self.is_waiting = True
            self._start()
            self._asked.release()
        return self._told

    def end(self) -> None:
        """Nobody asks any more; a call that hangs is left alone."""
        self._is_over = True
        self._asked.release()

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._answer, name=f"{self._device} beside", daemon=True)
            self._thread.start()

    def _answer(self) -> None:
        # Whose call is stuck is read from the names of threads in /proc.
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(self._device[:15])
        while self._asked.acquire() and not self._is_over:
            self._told = self._telemetry.read(slow_round=True)
            self.is_waiting = False
