"""What the program says of its steps, and when the next one is late.

Only a step that differs from the last, or a phase that differs, is progress. Beats that go on without one
show that the program lives, not that it works.
"""

from collections import deque
from typing import Final

from nodeagent.job.hang.settings import Settings
from nodeagent.job.sample import Beat, Phase

INTERVALS: Final = 50
TIMES_THE_SLOWEST: Final = 6


class Beats:
    """``received``: the run has sent a beat. ``advanced``: it has reported a second step."""

    def __init__(self, settings: Settings, began_s: float) -> None:
        self._settings = settings
        self._began_s = began_s
        self._progress_s = began_s
        self._unknown_s = 0.0
        self._step: int | None = None
        self._phase = Phase.TRAIN
        self._has_phases = False
        self._intervals = deque[float](maxlen=INTERVALS)
        self.received = False
        self.advanced = False

    def beaten(self, beat: Beat) -> bool:
        """Whether it was progress. One that is older than the run (or than its ranks) counts for nothing."""
        if beat.t_s < self._began_s:
            return False
        is_first, self.received = not self.received, True
        has_new_phase = beat.phase is not self._phase
        has_new_step = beat.step is not None and beat.step != self._step
        is_advance = has_new_step and self._step is not None
        if is_advance and self.advanced and not has_new_phase and beat.phase is Phase.TRAIN:
            self._intervals.append(max(0.0, beat.t_s - self._progress_s - self._unknown_s))
        if has_new_step:
            self._step = beat.step
        self.advanced |= is_advance
        self._phase = beat.phase
        self._has_phases |= beat.phase not in (Phase.TRAIN, Phase.LOAD)
        if is_first or has_new_phase or is_advance:
            self._progress_s, self._unknown_s = beat.t_s, 0.0
            return True
        return False

    def unknown(self, seconds: float) -> bool:
        """Nothing was known for so long: it does not count. True: for too long, and the limit begins anew."""
        self._unknown_s += seconds
        return self._unknown_s >= self._settings.most_unknown_s

    def begin_anew(self, now_s: float) -> None:
        self._progress_s, self._unknown_s = now_s, 0.0

    def still_s(self, now_s: float) -> float:
        return max(0.0, now_s - self._progress_s - self._unknown_s)

    def limit_s(self, *, chips_readable: bool) -> float:
        """How long it may go on without progress. Where the chips cannot be read, only the beats count."""
        longest = self._settings.hang_time_s
        if self._phase is not Phase.TRAIN or not self.advanced:
            return max(self._settings.slow_time_s, longest)
        if not self._has_phases or not chips_readable or not self._intervals:
            return longest
        usual = TIMES_THE_SLOWEST * max(self._intervals)
        return min(longest, max(self._settings.least_beat_limit_s, usual))

    def describe(self) -> str:
        step = "no step" if self._step is None else f"step {self._step}"
        return f"{step} in phase {self._phase.value}"
