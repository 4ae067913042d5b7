"""The processes of a run: which are ranks, which of them are quiet, and which others are at work.

Ranks are the processes that use a chip. If that is unknown, or none uses one yet, they are those with RANK in
their environment, without the workers that inherited it from a rank; else the launcher's children. A launcher
counts for nothing. Any other process at work (a writer of checkpoints, a compiler, a data loader) is work of
the run: it stops the clock of a hang.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from nodeagent.job.hang.rates import ProcessKey, ProcessRate, UsualValue, key_of
from nodeagent.job.hang.settings import SAMPLES_OF_A_MEAN, HangSettings
from nodeagent.job.sample import ProcessSample, RunSample

_ENDED: Final = frozenset("ZX")
_STANDS: Final = frozenset("Tt")
"""Stopped, or by a tracer: proc(5), /proc/pid/stat."""


@dataclass(frozen=True, slots=True)
class Roles:
    ranks: tuple[ProcessSample, ...]
    others: tuple[ProcessSample, ...]
    stopped: tuple[ProcessSample, ...]
    """All stopped processes of the tree."""


class Members:
    def __init__(self) -> None:
        self._users = frozenset[ProcessKey]()
        """The last users of a chip. They stay ranks while users are unknown, or if one listing is empty."""

    def of(self, sample: RunSample) -> Roles:
        alive = [each for each in sample.processes if each.state not in _ENDED]
        holding = [each for each in alive if each.holds]
        if holding:
            self._users = frozenset(map(key_of, holding))
        else:
            holding = [each for each in alive if key_of(each) in self._users]
        ranks = holding or _by_environment(alive) or _by_launcher(alive)
        pids = {each.pid for each in ranks}
        return Roles(
            tuple(ranks),
            tuple(each for each in alive if each.pid not in pids and not each.launcher),
            tuple(each for each in alive if each.state in _STANDS),
        )


def _by_environment(alive: Iterable[ProcessSample]) -> list[ProcessSample]:
    """A launcher may be a rank: if the whole tree has RANK, the two look alike."""
    having = [each for each in alive if each.has_rank]
    ranks = {each.pid for each in having if not each.launcher}
    return [each for each in having if each.ppid not in ranks]


def _by_launcher(alive: Iterable[ProcessSample]) -> list[ProcessSample]:
    launchers = {each.pid for each in alive if each.launcher}
    children = [each for each in alive if each.ppid in launchers and not each.launcher]
    return children or [each for each in alive if each.launcher]


BUSY_BYTES_PER_S: Final = 1_000_000.0
BUSY_CPU_S_PER_MIN: Final = 5.0


class _WorkOfOthers:
    """The work of one process, or of several, in the newest samples. Without a sample there was no work."""

    __slots__ = ("bytes", "cpu", "samples")

    def __init__(self) -> None:
        self.bytes = deque[float](maxlen=SAMPLES_OF_A_MEAN)
        self.cpu = deque[float](maxlen=SAMPLES_OF_A_MEAN)
        self.samples = 0

    def add(self, bytes_per_s: float, cpu_s_per_min: float) -> None:
        self.bytes.append(bytes_per_s)
        self.cpu.append(cpu_s_per_min)
        self.samples += 1

    def why(self) -> str:
        bytes_per_s = sum(self.bytes) / SAMPLES_OF_A_MEAN
        cpu = sum(self.cpu) / SAMPLES_OF_A_MEAN
        if bytes_per_s >= BUSY_BYTES_PER_S:
            return f"moves {bytes_per_s / 1e6:.1f} MB/s"
        return f"uses {cpu:.0f} s of CPU a minute" if cpu >= BUSY_CPU_S_PER_MIN else ""


class Others:
    def __init__(self, settings: HangSettings) -> None:
        self._settings = settings
        self._works: dict[ProcessKey, _WorkOfOthers] = {}
        self._short_lived = _WorkOfOthers()

    def measured(self, others: Iterable[ProcessSample], rates: Mapping[ProcessKey, ProcessRate]) -> str:
        """Why the clock stops because of them; "" where it does not."""
        works: dict[ProcessKey, _WorkOfOthers] = {}
        young_bytes = young_cpu = 0.0
        reasons = list[str]()
        for process in others:
            key = key_of(process)
            works[key] = work = self._works.get(key) or _WorkOfOthers()
            rate = rates.get(key)
            if rate is None:
                continue
            if rate.bytes is None or rate.cpu is None:
                reasons.append(f"process {key.pid} cannot be read")
                continue
            work.add(rate.bytes, rate.cpu)
            if rate.is_new or 0 < work.samples <= SAMPLES_OF_A_MEAN:
                young_bytes += rate.bytes
                young_cpu += rate.cpu
            if why := work.why():
                reasons.append(f"process {key.pid} {why}")
        self._works = works
        if rates:
            self._short_lived.add(young_bytes, young_cpu)
        if not reasons and (why := self._short_lived.why()):
            reasons.append(f"what begins and ends {why}")
        return reasons[0] if reasons else ""


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

    def __init__(self, settings: HangSettings) -> None:
        self._settings = settings
        self._recent = deque[Interval](maxlen=SAMPLES_OF_A_MEAN)
        self._cpu = deque[tuple[float, float]](maxlen=SAMPLES_OF_A_MEAN)
        self._bytes = UsualValue(2 * settings.samples_of_window)
        self._calls = UsualValue(2 * settings.samples_of_window)
        self._burst_s: float | None = None
        self.known = False
        self.quiet_since_s: float | None = None
        self.calm_since_s: float | None = None

    def measured(self, now_s: float, rate: ProcessRate | None) -> None:
        self.known = False
        if rate is None or rate.bytes is None or rate.calls is None or rate.cpu is None:
            return
        self.known = True
        began_s = now_s - rate.seconds
        self._judge_calm(began_s, rate.cpu)
        self._judge_quiet(Interval(began_s, rate.bytes, rate.calls))

    def learn(self, rate: ProcessRate | None) -> None:
        """This sample is of a healthy run."""
        if rate is not None and rate.bytes is not None and rate.calls is not None:
            self._bytes.learn(rate.bytes)
            self._calls.learn(rate.calls)

    def doubt(self) -> None:
        self._bytes.doubt()
        self._calls.doubt()

    def unlearn(self) -> None:
        self._bytes = UsualValue(2 * self._settings.samples_of_window)
        self._calls = UsualValue(2 * self._settings.samples_of_window)

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
