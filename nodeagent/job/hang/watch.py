"""The watch of one run: samples and beats in, what they show of a hang out.

Two rules. Without beats: all ranks are quiet and all chips idle for the hang time. With beats: the next step
is late, and nothing moves. A third is for the start of a run after one that was stable: it takes several
times as long, and nothing moves. What is not known is never quiet. Nothing else acts before the run is armed,
and nothing at all for other kinds of work than training, nor unless the mode is ``restart``. ``replay``
applies it to a recording.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

from nodeagent.job.hang.moment import MeasuredRun, RunMoment
from nodeagent.job.hang.settings import HangSettings
from nodeagent.job.hang.timers import Arming, Beats, SampleHistory, StartTimer, Stretch
from nodeagent.job.model import HangMode, RunStart
from nodeagent.job.sample import Beat, RunSample
from nodeagent.job.series import SeriesRow
from nodeagent.job.session.values import HangStage, Hung


class HangLevel(IntEnum):
    NOTHING = 0
    SUSPECTED = 1
    CONFIRMED = 2
    """Confirmed, but never acted on."""

    ACTS = 3


class HangCase:
    def __init__(self, run: int) -> None:
        self._run = run
        self.level = HangLevel.NOTHING

    def found(self, level: HangLevel, why: str, since_s: float) -> tuple[Hung, ...]:
        """``level`` is what holds now. That it fell is not reported before it is NOTHING."""
        if level <= self.level:
            return ()
        self.level = level
        what = HangStage.SUSPECTED if level is HangLevel.SUSPECTED else HangStage.CONFIRMED
        return (self._hung(what, why, since_s, acts=level is HangLevel.ACTS),)

    def ended(self, what: HangStage, why: str, since_s: float) -> tuple[Hung, ...]:
        """``what``: CLEARED, it goes on; DROPPED, it can no longer be followed."""
        if self.level is HangLevel.NOTHING:
            return ()
        self.level = HangLevel.NOTHING
        return (self._hung(what, why, since_s, acts=False),)

    def _hung(self, what: HangStage, why: str, since_s: float, *, acts: bool) -> Hung:
        return Hung(run=self._run, what=what, why=why, since_s=round(since_s, 3), acts=acts)


SAMPLES_TO_CONFIRM: Final = 3
"""So many samples in a row must show that nothing moves, once a beat is late."""

STEPS_DIFFER: Final = 1.5
"""A slowest step that is so many times slower or faster than the one that was noted is noted again."""

SHORT_STEP_S: Final = 1.0
"""Below it, how long a step takes changes no limit."""

TRAINING: Final = "training"


class _Found(NamedTuple):
    level: HangLevel
    why: str
    since_s: float


class ChipsSeen(NamedTuple):
    """What this node's chips show, for who looks at all nodes of the job. ``flat_s``: how long all have been
    flat, whatever the ranks do; ``idle_high_s``: and in use by what they report, without any sign of work.
    """

    flat_s: float
    idle_high_s: float
    acts: bool


_NOTHING: Final = _Found(HangLevel.NOTHING, "", 0.0)


class RunWatch:
    def __init__(self, settings: HangSettings) -> None:
        self._settings = settings
        self._run = 1
        self._began_s: float | None = None
        self._last_s: float | None = None
        self._start: RunStart | None = None
        self._before: RunStart | None = None
        self._processes = MeasuredRun(settings)
        self._forget(None)

    def run_began(self, now_s: float, run: int = 1, start: RunStart | None = None) -> None:
        """Everything that is known of the run before is forgotten, but how long runs take to become stable.
        ``start``: of runs that this watch has not seen.
        """
        self._run = run
        self._start = self._start if start is None else start.longest(self._start)
        self._before = self._start
        self._forget(now_s)
        self._last_s = None

    @property
    def start(self) -> RunStart | None:
        """How long the runs so far took until they were stable; None: none was."""
        return self._start

    def sampled(self, sample: RunSample) -> tuple[Hung, ...]:
        """A sample that is no newer than the one before is passed over."""
        if self._settings.mode is HangMode.OFF or (self._last_s is not None and sample.t_s <= self._last_s):
            return ()
        self._last_s = sample.t_s
        if self._began_s is None:
            self._began_s = sample.t_s
        moment = self._processes.measured(sample)
        if moment.ranks_replaced:
            ended = self._case.ended(HangStage.CLEARED, "all ranks are new", self._still_s(sample.t_s))
            self._before = None  # what a launcher lets its new ranks prepare is not known
            self._forget(sample.t_s)
            self._processes.measured(sample)
            return ended
        still_s = self._still_s(sample.t_s)
        dropped = self._count(moment)
        self._learn(moment)
        self._note_start()
        return self._report(moment, dropped, still_s)

    def beaten(self, beat: Beat) -> tuple[Hung, ...]:
        if self._settings.mode is HangMode.OFF:
            return ()
        still_s = self._still_s(beat.t_s)
        if not self._beats.beaten(beat):
            return ()
        self._samples_late = 0
        if self._beats.advanced:
            self._arming.advanced(beat.t_s)
            self._note_start()
        return self._case.ended(HangStage.CLEARED, self._beats.describe(), still_s)

    def seen(self, now_s: float) -> ChipsSeen:
        """As of the newest sample. Nothing, before the run is armed and while the next beat is not late."""
        may_report = self._arming.armed or now_s - (self._began_s or 0.0) >= self._settings.start_time_s
        if not may_report or (self._beats.received and not self._is_late(now_s)):
            return ChipsSeen(0.0, 0.0, False)
        return ChipsSeen(self._flat.still_s, self._high.still_s, self._most() is HangLevel.ACTS)

    @property
    def has_confirmed(self) -> bool:
        """It has reported a hang itself, and that goes on."""
        return self._case.level >= HangLevel.CONFIRMED

    def _forget(self, now_s: float | None) -> None:
        settings = self._settings
        self._began_s = now_s
        self._processes = MeasuredRun(settings, self._processes)
        self._arming = Arming(settings)
        slowest_s = None if self._start is None else self._start.step_s
        self._beats = Beats(settings, float("-inf") if now_s is None else now_s, slowest_s)
        self._history = SampleHistory(settings)
        self._still, self._dead = Stretch(settings, self._history), Stretch(settings, self._history)
        self._flat, self._high = Stretch(settings, self._history), Stretch(settings, self._history)
        self._case = HangCase(self._run)
        self._starting = StartTimer()
        self._samples_late = 0
        self._read_s = float("-inf")
        self._has_learnt = False

    def _note_start(self) -> None:
        arming = self._arming
        if arming.stable_s is not None and self._began_s is not None:
            seconds = max(0.0, arming.stable_s - self._began_s)
            found = RunStart(seconds=seconds, by_steps=arming.by_steps, step_s=self._step_s())
            self._start = found.longest(self._start)

    def _step_s(self) -> float | None:
        """What is worth to be noted: each change would be a write to the disk."""
        found, noted = self._beats.slowest_s, None if self._start is None else self._start.step_s
        if found is None or noted is None:
            return found
        low, high = sorted((max(found, SHORT_STEP_S), max(noted, SHORT_STEP_S)))
        return noted if high < STEPS_DIFFER * low else found

    def limits(self) -> tuple[float | None, float | None]:
        """After how many seconds without a step it hangs, and how many its start may take, as learnt."""
        step_s = self._beats.limit_s(chips_readable=True) if self._beats.advanced else None
        return step_s, self._settings.start_limit(self._start)

    def _count(self, moment: RunMoment) -> str:
        """Advances the clocks. Why something was dropped, else ""."""
        seconds = moment.now_s - moment.began_s
        if moment.readable:
            self._read_s = moment.now_s
        reason = moment.unknown or moment.chips_unknown
        self._history.add(moment.began_s, moment.now_s, is_known=not reason)
        dropped = False
        for stretch, since_s in ((self._still, moment.still_since_s), (self._dead, moment.dead_since_s)):
            if moment.works:
                stretch.broken()
            else:
                dropped |= stretch.counted(since_s, moment.now_s, seconds, is_known=not reason)
        is_known = moment.readable and not moment.unknown
        for stretch, since_s in ((self._flat, moment.flat_since_s), (self._high, moment.high_since_s)):
            stretch.counted(since_s, moment.now_s, seconds, is_known=is_known)
        if moment.unknown:
            self._starting.unknown(seconds)
        if moment.unknown and self._beats.unknown(seconds):
            self._beats.begin_again(moment.now_s)
            dropped = True
        return reason if dropped else ""

    def _learn(self, moment: RunMoment) -> None:
        self._arming.measured(moment.began_s, moment.now_s, chips_vary=moment.vary)
        if not self._arming.learns:
            if self._has_learnt:
                self._processes.unlearn()
            self._has_learnt = False
        elif self._still.is_begun:
            self._processes.doubt()
        else:
            self._processes.learn()
            self._has_learnt = True

    def _report(self, moment: RunMoment, dropped: str, still_s: float) -> tuple[Hung, ...]:
        rules = (self._by_start(moment), self._by_beats(moment), self._by_silence(moment))
        found = max(rules, key=lambda each: each.level)
        if found.level is not HangLevel.NOTHING:
            return self._case.found(found.level, found.why, found.since_s)
        unknown = dropped or moment.unknown or moment.chips_unknown
        if unknown and not moment.works:
            return self._case.ended(HangStage.DROPPED, unknown, still_s)
        return self._case.ended(HangStage.CLEARED, moment.works or "a rank uses CPU", still_s)

    def _by_silence(self, moment: RunMoment) -> _Found:
        """All ranks quiet and all chips dead. An idle chip with a busy rank is only reported, later."""
        settings = self._settings
        if not self._arming.armed and moment.now_s - (self._began_s or 0.0) < settings.start_time_s:
            return _NOTHING
        limit_s = settings.hang_time_s
        may_confirm = not self._beats.received or self._is_late(moment.now_s)
        if not may_confirm and self._limit_s(moment.now_s) > limit_s:
            return _NOTHING
        if may_confirm and self._dead.has_lasted(limit_s):
            return _Found(self._most(), moment.what, self._dead.still_s)
        if may_confirm and self._still.has_lasted(2 * limit_s):
            why = f"{moment.what}; a rank uses CPU"
            return _Found(HangLevel.CONFIRMED, why, self._still.still_s)
        for stretch, limit in ((self._dead, limit_s), (self._still, 2 * limit_s)):
            if stretch.is_begun and stretch.has_lasted(settings.suspicion_s(limit)):
                return _Found(HangLevel.SUSPECTED, moment.what, stretch.still_s)
        return _NOTHING

    def _by_beats(self, moment: RunMoment) -> _Found:
        if not self._beats.received or not self._is_late(moment.now_s):
            self._samples_late = 0
            return _NOTHING
        still_s = self._beats.still_s(moment.now_s)
        late = f"{self._beats.describe()} for {still_s:.0f} s"
        is_judged = moment.readable or still_s >= self._settings.hang_time_s
        self._samples_late = self._samples_late + 1 if moment.quiet and moment.flat and is_judged else 0
        if self._samples_late >= SAMPLES_TO_CONFIRM:
            return _Found(self._most(), f"{late}, {moment.what}", still_s)
        if still_s >= 2 * self._limit_s(moment.now_s):
            why = moment.works or moment.unknown or "chips vary"
            return _Found(HangLevel.CONFIRMED, f"{late}, but {why}", still_s)
        return _Found(HangLevel.SUSPECTED, late, still_s)

    def _by_start(self, moment: RunMoment) -> _Found:
        """A run after one that was stable is not so in several times as long. Where that one reported its
        steps, it is enough that nothing moves; else its chips have to be dead.
        """
        settings, before = self._settings, self._before
        limit_s = settings.start_limit(before)
        if limit_s is None or self._arming.armed or self._began_s is None:
            return _NOTHING
        took_s = self._starting.elapsed_s(self._began_s, moment.now_s)
        is_dead = self._dead.has_lasted(min(settings.hang_time_s, limit_s))
        has_steps = self._beats.received or (before is not None and before.by_steps)
        is_judged = moment.readable or took_s >= settings.hang_time_s
        is_still = has_steps and is_judged and moment.quiet and moment.flat and moment.calm
        has_been_still = self._starting.has_been_still(SAMPLES_TO_CONFIRM, is_still=is_still)
        if took_s < limit_s and not (self._dead.is_begun or has_been_still):
            return _NOTHING
        if took_s < settings.suspicion_s(limit_s):
            return _NOTHING
        late = f"it has begun no work for {took_s:.0f} s, of at most {limit_s:.0f} s"
        if took_s >= limit_s and (is_dead or has_been_still):
            return _Found(self._most(at_start=True), f"{late}, {moment.what}", took_s)
        if took_s >= 2 * limit_s:
            why = moment.works or moment.unknown or moment.chips_unknown or "a rank uses CPU"
            return _Found(HangLevel.CONFIRMED, f"{late}, but {why}", took_s)
        return _Found(HangLevel.SUSPECTED, late, took_s)

    def _limit_s(self, now_s: float) -> float:
        """A sample or two without the chips changes nothing."""
        return self._beats.limit_s(chips_readable=now_s - self._read_s <= self._settings.gap_s)

    def _is_late(self, now_s: float) -> bool:
        return self._beats.still_s(now_s) >= self._limit_s(now_s)

    def _most(self, *, at_start: bool = False) -> HangLevel:
        """What a confirmed hang may lead to."""
        settings = self._settings
        may_act = (
            (self._arming.armed or at_start)
            and settings.kind == TRAINING
            and settings.mode is HangMode.RESTART
        )
        return HangLevel.ACTS if may_act else HangLevel.CONFIRMED

    def _still_s(self, now_s: float) -> float:
        if self._beats.received:
            return self._beats.still_s(now_s)
        return max(self._still.still_s, self._dead.still_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayFinding:
    t_s: float
    hung: Hung


def replay(rows: Iterable[SeriesRow], settings: HangSettings) -> tuple[ReplayFinding, ...]:
    """The run begins with the first row. A row's beats came before its sample."""
    watch = RunWatch(settings)
    found = list[ReplayFinding]()
    for row in rows:
        for beat in row.beats:
            found += [ReplayFinding(t_s=beat.t_s, hung=each) for each in watch.beaten(beat)]
        found += [ReplayFinding(t_s=row.sample.t_s, hung=each) for each in watch.sampled(row.sample)]
    return tuple(found)
