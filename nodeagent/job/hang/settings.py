"""What a hang watch is set to, and the windows that follow from it.

Windows have their full length for each hang time that a policy may ask for. Below ``SHORTEST_S``, which only
tests use, they shrink with the hang time: the window of a flat chip, the row that arms, the time between
bursts, the least limit of beats. What is counted in samples follows the period. Rates (bytes, calls and CPU
seconds in a time), shares and points never change, nor do ``slow_time_s`` and ``start_time_s``.
"""

from dataclasses import dataclass
from typing import Final

from nodeagent.job.model import HangMode, RunStart

SHORTEST_S: Final = 600.0
"""The least that MA_HANG_DETECT_TIME may be: ten minutes."""

SAMPLES_OF_A_MEAN: Final = 6

_WINDOW_S: Final = 300.0
"""For a hang time of ``SHORTEST_S`` and more; below it in proportion."""

TIMES_THE_LONGEST_START: Final = 6
LEAST_START_S: Final = 1200.0
"""A run that loads a checkpoint may take much longer to begin than the one that wrote it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HangSettings:
    """``hang_time_s``: how long all must stand still. ``slow_time_s``: how long the first step, and a phase
    other than training, may take at least. ``start_time_s``: how long a run may do nothing before it is
    armed, without a run before it: then that is reported. ``start_limit_s``: how long any run may take until
    it is armed; without it, a run after one that was armed has a limit that follows from that one.
    ``least_start_s``: that limit is at least so long. Raises ValueError.
    """

    hang_time_s: float = 1800.0
    period_s: float = 10.0
    kind: str = "training"
    mode: HangMode = HangMode.NOTIFY
    slow_time_s: float = 7200.0
    start_time_s: float = 7200.0
    start_limit_s: float | None = None
    least_start_s: float = 0.0

    def __post_init__(self) -> None:
        for name in ("hang_time_s", "period_s", "slow_time_s", "start_time_s"):
            value = getattr(self, name)
            if not 0 < value < float("inf"):
                raise ValueError(f"{name}: greater than 0, not {value}")
        if self.samples_of_window < SAMPLES_OF_A_MEAN:
            raise ValueError(
                f"period_s: {self.period_s:g} is too long for hang_time_s {self.hang_time_s:g}: "
                f"at most {self.window_s / SAMPLES_OF_A_MEAN:g}"
            )

    @property
    def _scale(self) -> float:
        return min(1.0, self.hang_time_s / SHORTEST_S)

    @property
    def window_s(self) -> float:
        """Over this long a chip is flat, or not."""
        return _WINDOW_S * self._scale

    @property
    def samples_of_window(self) -> int:
        return round(self.window_s / self.period_s)

    @property
    def arming_s(self) -> float:
        return 600.0 * self._scale

    @property
    def between_bursts_s(self) -> float:
        return 600.0 * self._scale

    @property
    def least_beat_limit_s(self) -> float:
        return 600.0 * self._scale

    def start_limit(self, before: RunStart | None) -> float | None:
        """How long a run may take until it is armed; ``before``: how long the runs before it took. None:
        nothing is known.
        """
        if self.start_limit_s is not None:
            return self.start_limit_s
        if before is None:
            return None
        usual_s = TIMES_THE_LONGEST_START * before.seconds
        return max(usual_s, LEAST_START_S * self._scale, self.hang_time_s, self.least_start_s)

    @property
    def most_unknown_s(self) -> float:
        """A suspicion that could not be followed for so long is dropped."""
        return self.hang_time_s / 2

    @property
    def gap_s(self) -> float:
        """Samples further apart than this show nothing of the time between them."""
        return 3 * self.period_s

    def suspicion_s(self, limit_s: float) -> float:
        """When what is confirmed at ``limit_s`` is reported first."""
        return min(limit_s, max(limit_s / 2, 1.5 * self.window_s))


def least_hang_time_s(period_s: float) -> float:
    """So that the window has the samples of a mean, with one each ``period_s``."""
    return SAMPLES_OF_A_MEAN * period_s * SHORTEST_S / _WINDOW_S
