"""What was reported of one stand-still: each step of it once, and its end."""

from enum import IntEnum

from nodeagent.job.inputs import Hang, Hung


class Level(IntEnum):
    NOTHING = 0
    SUSPECTED = 1
    CONFIRMED = 2
    """Confirmed, but never acted on."""

    ACTS = 3


class Case:
    def __init__(self, run: int) -> None:
        self._run = run
        self.level = Level.NOTHING

    def found(self, level: Level, why: str, since_s: float) -> tuple[Hung, ...]:
        """``level`` is what holds now. That it fell is not reported before it is NOTHING."""
        if level <= self.level:
            return ()
        self.level = level
        what = Hang.SUSPECTED if level is Level.SUSPECTED else Hang.CONFIRMED
        return (self._hung(what, why, since_s, acts=level is Level.ACTS),)

    def ended(self, what: Hang, why: str, since_s: float) -> tuple[Hung, ...]:
        """``what``: CLEARED, it goes on; DROPPED, it can no longer be followed."""
        if self.level is Level.NOTHING:
            return ()
        self.level = Level.NOTHING
        return (self._hung(what, why, since_s, acts=False),)

    def _hung(self, what: Hang, why: str, since_s: float, *, acts: bool) -> Hung:
        return Hung(run=self._run, what=what, why=why, since_s=round(since_s, 3), acts=acts)
