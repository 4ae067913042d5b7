"""The two times: the rule clock that never steps back, and the wall clock that people read.

Within a boot the rule clock is CLOCK_BOOTTIME moved by a constant, so it is exact across restarts of
the daemon and blind to steps of the wall clock. Across boots only the wall clock can say how long
the machine was off; what it says is bounded, and never negative.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from nodeagent.store.records import ClockAnchor

log = logging.getLogger(__name__)

MAX_OFF_NS = 10 * 86_400 * 1_000_000_000
"""A machine that seems to have been off for longer has a wrong wall clock, or no window that matters."""


def _boottime_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """``offset_ns`` takes CLOCK_BOOTTIME to the rule clock; the two readers are the kernel's clocks.

    ``doubt`` says why the time that the machine was off cannot be what the wall clock says, "" if it can.
    """

    boot_id: str
    offset_ns: int
    doubt: str = ""
    boottime_ns: Callable[[], int] = _boottime_ns
    wall_ns: Callable[[], int] = time.time_ns

    def rule_ns(self) -> int:
        return self.boottime_ns() + self.offset_ns

    def rule_of_boottime(self, boottime_ns: int) -> int:
        return boottime_ns + self.offset_ns

    def wall_offset_ns(self) -> int:
        """Wall time = rule time + this, as the wall clock stands now."""
        return self.wall_ns() - self.rule_ns()

    def anchor(self) -> ClockAnchor:
        boottime_ns = self.boottime_ns()
        return ClockAnchor(
            boot_id=self.boot_id,
            boottime_ns=boottime_ns,
            rule_ns=boottime_ns + self.offset_ns,
            wall_ns=self.wall_ns(),
        )


def carry_on(
    anchor: ClockAnchor | None,
    boot_id: str,
    boottime_ns: Callable[[], int] = _boottime_ns,
    wall_ns: Callable[[], int] = time.time_ns,
) -> Clock:
    """The clock that goes on from the last stored anchor; without one it begins at the wall time."""
    now_boottime_ns, now_wall_ns = boottime_ns(), wall_ns()
    doubt = ""
    if anchor is None:
        rule_ns = now_wall_ns
    elif anchor.boot_id == boot_id:
        rule_ns = anchor.rule_ns + now_boottime_ns - anchor.boottime_ns
    else:
        off_ns = now_wall_ns - anchor.wall_ns
        taken_ns = min(max(off_ns, 0), MAX_OFF_NS)
        if off_ns != taken_ns:
            said_s, taken_s = off_ns // 10**9, taken_ns // 10**9
            doubt = f"the wall clock says the machine was off for {said_s} s; windows take it as {taken_s} s"
            log.warning("%s", doubt)
        rule_ns = anchor.rule_ns + taken_ns
    return Clock(
        boot_id=boot_id,
        offset_ns=rule_ns - now_boottime_ns,
        doubt=doubt,
        boottime_ns=boottime_ns,
        wall_ns=wall_ns,
    )
