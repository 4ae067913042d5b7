"""The timers of a watch: how long a run has been still, when its next step is late, whether it was ever
stable.

Time of which nothing is known does not count. Too much of it ends a stretch: the run may have worked then.
"""

from collections import deque
from typing import Final, NamedTuple

from nodeagent.job.hang.settings import HangSettings
from nodeagent.job.sample import Beat, ProgramPhase

_ROUNDING_S: Final = 1e-6


class _Span(NamedTuple):
    began_s: float
    ended_s: float
    is_known: bool


class SampleHistory:
    """The newest samples, as far back as a stretch can begin: what of them was known."""

    def __init__(self, settings: HangSettings) -> None:
        self._spans = deque[_Span](maxlen=2 * settings.samples_of_window + 6)

    def add(self, began_s: float, ended_s: float, *, is_known: bool) -> None:
        self._spans.append(_Span(began_s, ended_s, is_known))

    def since(self, since_s: float) -> tuple[float, float]:
        """Seconds that were known, and that were not."""
        known = unknown = 0.0
        for span in self._spans:
            if span.ended_s <= since_s:
                continue
            seconds = span.ended_s - max(span.began_s, since_s)
            known, unknown = (known + seconds, unknown) if span.is_known else (known, unknown + seconds)
        return known, unknown


class Stretch:
    """``still_s`` is 0 while the run is not still."""

    def __init__(self, settings: HangSettings, history: SampleHistory) -> None:
        self._settings = settings
        self._history = history
        self._unknown_s = 0.0
        self._not_before_s = float("-inf")
        self.is_begun = False
        self.still_s = 0.0

    def counted(self, since_s: float | None, now_s: float, seconds: float, *, is_known: bool) -> bool:
        """``since_s``: since when all is quiet, None where it is not. True: the stretch is dropped."""
        if not is_known:
            return self.unknown(now_s, seconds)
        if since_s is None:
            self.broken()
        else:
            self.quiet(since_s, now_s, seconds)
        return False

    def quiet(self, since_s: float, now_s: float, seconds: float) -> None:
        """All was quiet for these seconds, and since then."""
        if self.is_begun:
            self.still_s += seconds
            return
        self.is_begun = True
        self.still_s, self._unknown_s = self._history.since(max(since_s, self._not_before_s))
        if self._unknown_s >= self._settings.most_unknown_s - _ROUNDING_S:
            self.still_s, self._unknown_s, self._not_before_s = 0.0, 0.0, now_s

    def unknown(self, now_s: float, seconds: float) -> bool:
        """Nothing is known of these seconds. True: the stretch is dropped for it."""
        if not self.is_begun:
            return False
        self._unknown_s += seconds
        if self._unknown_s < self._settings.most_unknown_s - _ROUNDING_S:
            return False
        self.broken()
        self._not_before_s = now_s
        return True

    def broken(self) -> None:
        self.is_begun, self.still_s, self._unknown_s = False, 0.0, 0.0

    def has_lasted(self, limit_s: float) -> bool:
        return self.still_s >= limit_s - _ROUNDING_S


INTERVALS: Final = 50
TIMES_THE_SLOWEST: Final = 6


class Beats:
    """``received``: the run has sent a beat. ``advanced``: it has reported a second step.
    ``slowest_before_s``: the slowest step of the run before; until this run has made as many steps as are
    looked at, one may be as slow.
    """

    def __init__(self, settings: HangSettings, began_s: float, slowest_before_s: float | None = None) -> None:
        self._settings = settings
        self._began_s = began_s
        self._slowest_before_s = slowest_before_s
        self._progress_s = began_s
        self._unknown_s = 0.0
        self._step: int | None = None
        self._phase = ProgramPhase.TRAIN
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
        if is_advance and self.advanced and not has_new_phase and beat.phase is ProgramPhase.TRAIN:
            self._intervals.append(max(0.0, beat.t_s - self._progress_s - self._unknown_s))
        if has_new_step:
            self._step = beat.step
        self.advanced |= is_advance
        self._phase = beat.phase
        self._has_phases |= beat.phase not in (ProgramPhase.TRAIN, ProgramPhase.LOAD)
        if is_first or has_new_phase or is_advance:
            self._progress_s, self._unknown_s = beat.t_s, 0.0
            return True
        return False

    def unknown(self, seconds: float) -> bool:
        """Nothing was known for so long: it does not count. True: too long, and the limit begins again."""
        self._unknown_s += seconds
        return self._unknown_s >= self._settings.most_unknown_s

    def begin_again(self, now_s: float) -> None:
        self._progress_s, self._unknown_s = now_s, 0.0

    def still_s(self, now_s: float) -> float:
        return max(0.0, now_s - self._progress_s - self._unknown_s)

    def limit_s(self, *, chips_readable: bool) -> float:
        """How long it may go on without progress. Where the chips cannot be read, only the beats count."""
        longest = self._settings.hang_time_s
        if self._phase is not ProgramPhase.TRAIN or not self.advanced:
            return max(self._settings.slow_time_s, longest)
        if not self._has_phases or not chips_readable or not self._intervals:
            return longest
        usual = TIMES_THE_SLOWEST * max(*self._intervals, self._of_before_s())
        return min(longest, max(self._settings.least_beat_limit_s, usual))

    @property
    def slowest_s(self) -> float | None:
        """Of the last steps; None before there are as many as are looked at."""
        return max(self._intervals) if len(self._intervals) == INTERVALS else None

    def _of_before_s(self) -> float:
        return (self._slowest_before_s or 0.0) if self.slowest_s is None else 0.0

    def describe(self) -> str:
        step = "no step" if self._step is None else f"step {self._step}"
        return f"{step} in phase {self._phase.value}"


class Arming:
    """``learns``: what is measured now is what is usual of the run. ``stable_s``: when the run reached what
    it is armed for, None before.
    """

    def __init__(self, settings: HangSettings) -> None:
        self._settings = settings
        self._varying_since_s: float | None = None
        self.armed = False
        self.stable_s: float | None = None
        self.by_steps = False

    @property
    def learns(self) -> bool:
        return self.armed or self._varying_since_s is not None

    def advanced(self, at_s: float) -> None:
        if not self.armed:
            self.armed = self.by_steps = True
            self.stable_s = at_s

    def measured(self, began_s: float, now_s: float, *, chips_vary: bool) -> None:
        """``chips_vary``: one of the job does, each of the others is in use, and all could be read."""
        if self.armed:
            return
        is_gap = now_s - began_s > self._settings.gap_s
        if is_gap or not chips_vary:
            self._varying_since_s = None
        elif self._varying_since_s is None:
            self._varying_since_s = began_s
        elif now_s - self._varying_since_s >= self._settings.arming_s:
            self.armed = True
            self.stable_s = self._varying_since_s


class StartTimer:
    """How long a run has taken so far, without the time of which nothing is known."""

    def __init__(self) -> None:
        self._unknown_s = 0.0
        self._samples_still = 0

    def elapsed_s(self, began_s: float, now_s: float) -> float:
        return max(0.0, now_s - began_s - self._unknown_s)

    def unknown(self, seconds: float) -> None:
        self._unknown_s += seconds

    def has_been_still(self, samples: int, *, is_still: bool) -> bool:
        """Of the newest sample; whether so many in a row were still."""
        self._samples_still = self._samples_still + 1 if is_still else 0
        return self._samples_still >= samples
