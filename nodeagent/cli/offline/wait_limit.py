"""How long ``scan`` waits for a source: for its driver to open, then to be read. The waiting is others'."""

from collections.abc import Callable
from typing import Final

OPEN_DEADLINE_S: Final = 60.0
"""GPUs without persistence mode take up to 3 s each: the driver starts one when it is first opened, and stops
it with the last process that has it open (NVIDIA, Driver Persistence)."""

READ_DEADLINE_S: Final = 10.0
"""Longer than the default deadline of a call, so that one device that hangs is reported by its name."""

REPORT_AFTER_S: Final = 5.0
"""After so long a wait, what is waited for is shown."""


class WaitLimit:
    """Begins when it is made. ``report`` gets one line for each source whose driver takes long to open."""

    def __init__(self, now_s: float, report: Callable[[str], None]) -> None:
        self._begun_s = now_s
        self._report = report
        self._opening_s: dict[str, float] = {}
        self._reported: set[str] = set()

    def why_over(self, source: str, now_s: float, *, opening: bool) -> str:
        """Why it is waited for no longer; "" while it is. ``opening``: its worker has not said hello."""
        waited_s = now_s - self._begun_s
        if opening:
            self._opening_s[source] = now_s
            if waited_s >= OPEN_DEADLINE_S:
                return f"its driver was not open after {OPEN_DEADLINE_S:g} s"
            if waited_s >= REPORT_AFTER_S and source not in self._reported:
                self._reported.add(source)
                self._report(f"{source}: waiting for its driver to open, for {OPEN_DEADLINE_S:g} s at most")
        elif now_s - self._opening_s.get(source, self._begun_s) >= READ_DEADLINE_S:
            return f"not read within {READ_DEADLINE_S:g} s"
        return ""
