"""A rank process: since when it has been quiet, and since when it has used no CPU.

Quiet is the mean of six samples, so that polls and heartbeats do not count. A burst now and then (a log
line, what a watchdog dumps) does not end it.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from nodeagent.job.hang.baseline import Baseline
from nodeagent.job.hang.rates import Rate
from nodeagent.job.hang.settings import SAMPLES_OF_A_MEAN, Settings

QUIET_BYTES_PER_S: Final = 4000.0
QUIET_CALLS_PER_S: Final = 10.0
QUIET_SHARE: Final = 0.01
"""The share of what was usual for this process while the run was healthy."""

CALM_CPU_S_PER_MIN: Final = 5.0

SAMPLES_OF_A_BURST: Final = 2
"""A sample may fall into the middle of it."""


class Interval(NamedTuple):
    began_s: float
    bytes: float
    calls: float


class RankProcess:
    """``quiet_since_s`` and ``calm_since_s`` are None while it is not; ``known``: by the newest sample."""

    __slots__ = (
        "_burst_s",
        "_bytes",
        "_calls",
        "_cpu",
        "_recent",
        "_settings",
        "calm_since_s",
        "known",
        "quiet_since_s",
    )

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._recent = deque[Interval](maxlen=SAMPLES_OF_A_MEAN)
        self._cpu = deque[tuple[float, float]](maxlen=SAMPLES_OF_A_MEAN)
        self._bytes = Baseline(2 * settings.samples_of_window)
        self._calls = Baseline(2 * settings.samples_of_window)
        self._burst_s: float | None = None
        self.known = False
        self.quiet_since_s: float | None = None
        self.calm_since_s: float | None = None

    def measured(self, now_s: float, rate: Rate | None) -> None:
        self.known = False
        if rate is None or rate.bytes is None or rate.calls is None or rate.cpu is None:
            return
        self.known = True
        began_s = now_s - rate.seconds
        self._judge_calm(began_s, rate.cpu)
        self._judge_quiet(Interval(began_s, rate.bytes, rate.calls))

    def learn(self, rate: Rate | None) -> None:
        """This sample is of a healthy run."""
        if rate is not None and rate.bytes is not None and rate.calls is not None:
            self._bytes.learn(rate.bytes)
            self._calls.learn(rate.calls)

    def doubt(self) -> None:
        self._bytes.doubt()
        self._calls.doubt()

    def unlearn(self) -> None:
        self._bytes = Baseline(2 * self._settings.samples_of_window)
        self._calls = Baseline(2 * self._settings.samples_of_window)

    def _judge_quiet(self, now: Interval) -> None:
        most_bytes = max(QUIET_BYTES_PER_S, QUIET_SHARE * (self._bytes.median() or 0.0))
        most_calls = max(QUIET_CALLS_PER_S, QUIET_SHARE * (self._calls.median() or 0.0))

        def is_quiet(bytes_per_s: float, calls_per_s: float) -> bool:
            return bytes_per_s <= most_bytes and calls_per_s <= most_calls

        recent = self._recent
        before = recent[0] if len(recent) == SAMPLES_OF_A_MEAN else None
        recent.append(now)
        if len(recent) < SAMPLES_OF_A_MEAN:
            return
        if is_quiet(
            sum(each.bytes for each in recent) / SAMPLES_OF_A_MEAN,
            sum(each.calls for each in recent) / SAMPLES_OF_A_MEAN,
        ):
            if self.quiet_since_s is None:
                self.quiet_since_s = _since(recent, lambda each: is_quiet(each.bytes, each.calls))
        elif self.quiet_since_s is not None and self._is_lone_burst(now.began_s):
            recent.pop()
            if before is not None:
                recent.appendleft(before)
        else:
            self.quiet_since_s = None

    def _is_lone_burst(self, began_s: float) -> bool:
        """Every burst counts, also one that was not passed over: a process that goes on has many."""
        since_s = float("inf") if self._burst_s is None else began_s - self._burst_s
        if since_s < SAMPLES_OF_A_BURST * self._settings.period_s:
            return True
        self._burst_s = began_s
        return since_s >= self._settings.between_bursts_s

    def _judge_calm(self, began_s: float, cpu: float) -> None:
        self._cpu.append((began_s, cpu))
        if len(self._cpu) < SAMPLES_OF_A_MEAN:
            return
        if sum(each for _, each in self._cpu) / SAMPLES_OF_A_MEAN >= CALM_CPU_S_PER_MIN:
            self.calm_since_s = None
        elif self.calm_since_s is None:
            self.calm_since_s = next(
                (began for began, each in self._cpu if each < CALM_CPU_S_PER_MIN), began_s
            )


def _since(recent: deque[Interval], is_quiet: Callable[[Interval], bool]) -> float:
    """Where the quiet samples at the end of these begin; each alone, so that none that was loud counts."""
    since_s = recent[-1].began_s
    for each in reversed(recent):
        if not is_quiet(each):
            break
        since_s = each.began_s
    return since_s
