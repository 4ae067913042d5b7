"""The clocks of a scenario: the true time, which its script gives, and a wall clock that may be wrong.

From both the daemon's own clock makes the rule time that the engine is given.
"""

from nodeagent.daemon.clock import Clock, carry_on
from nodeagent.store.records import ClockAnchor
from tests.scenarios.wording import parse_ns


class Clocks:
    """``now_ns`` is the true time since the first boot, set by the script."""

    def __init__(self) -> None:
        self.now_ns = 0
        self._ahead_ns = 0
        self._booted_ns = 0
        self._boots = 1
        self._anchor: ClockAnchor | None = None
        self._clock = self._carried_on()

    def rule_ns(self) -> int:
        return self._clock.rule_ns()

    def wall_offset_ns(self) -> int:
        """Of the wall clock over the rule clock, 0 as long as both are right."""
        return self._clock.wall_offset_ns()

    @property
    def doubt(self) -> str:
        """What is doubtful about the time that the machine was off, "" if nothing."""
        return self._clock.doubt

    def commit(self) -> None:
        """What a store keeps with each commit, so that the next process knows the time."""
        self._anchor = self._clock.anchor()

    def step_wall(self, ahead: str) -> None:
        """``+10h``, ``-10h`` or ``right``. Raises ValueError for anything else."""
        sign = -1 if ahead.startswith("-") else 1
        self._ahead_ns = 0 if ahead == "right" else sign * parse_ns(ahead.lstrip("+-"))

    def start(self, rebooted: bool) -> None:
        """A new daemon, or a new boot too: between boots only the wall clock says how long it took."""
        if rebooted:
            self._boots += 1
            self._booted_ns = self.now_ns
        self._clock = self._carried_on()

    def _carried_on(self) -> Clock:
        return carry_on(
            self._anchor,
            f"boot-{self._boots}",
            boottime_ns=lambda: self.now_ns - self._booted_ns,
            wall_ns=lambda: self.now_ns + self._ahead_ns,
        )
