"""Measures a run each few seconds, takes its beats, and gives both to the watches for hangs and slow ranks.

Of the chips only the daemon knows: it is asked with each sample, and a sample for which no answer comes is
made without. It decides nothing, and imports what judges only once there is something to judge: a short
command does not wait for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from nodeagent.job.model import SECOND_NS, HangMode
from nodeagent.job.session.values import Armed, ProcessId, Progressed, SessionInput
from nodeagent.job.shell.loop import seconds
from nodeagent.job.shell.tree import Tree

if TYPE_CHECKING:
    from nodeagent.job.hang.settings import HangSettings
    from nodeagent.job.hang.watch import RunWatch
    from nodeagent.job.lines import ChipReading, ChipReadings
    from nodeagent.job.model import RunStart
    from nodeagent.job.sample import Beat, ChipSample, ProcessSample, StepTime
    from nodeagent.job.slow.watch import SlowWatch
    from nodeagent.job.step.member import SharedHangs, SharedStepTimes
    from nodeagent.job.watching.progress import ByBeats, ProgressReader
    from nodeagent.job.watching.samples import Ring, Sampler

BETWEEN_CHECKPOINTS_NS: Final = SECOND_NS
"""A program that reports checkpoints more often has the newest noted with the next sample."""

ANSWER_WITHIN_NS: Final = 2 * SECOND_NS
"""If the daemon does not answer in time, the chips are unknown in this sample."""

MAX_BEATS: Final = 256
"""So many are kept with a sample."""

Ask = Callable[[int, int, float | None, float | None], bool]
"""(number, now, learnt limits of a step and of a start): whether the daemon was asked for the chips."""


class Watching:
    def __init__(
        self,
        settings: HangSettings,
        tree: Tree,
        ring: Ring,
        ask: Ask,
        progress: ProgressReader | None,
        shared: SharedHangs | None = None,
        shared_times: SharedStepTimes | None = None,
    ) -> None:
        """``progress`` None: only beats report it. ``shared`` and ``shared_times``: in a step of several
        nodes, what they report to each other about a hang, and of their step times.
        """
        self._settings = settings
        self._period_ns = round(settings.period_s * SECOND_NS)
        self._tree = tree
        self._ring = ring
        self._ask = ask
        self._progress = progress
        self._shared = shared
        self._shared_times = shared_times
        self._beaten: ByBeats | None = None
        self._noted_ns = 0
        self._start: RunStart | None = None
        self._command: ProcessId | None = None
        self._run = 0
        self._began_s = 0.0
        self._judge: RunWatch | None = None
        self._sampler: Sampler | None = None
        self._slow: SlowWatch | None = None
        self._beats: list[Beat] = []
        self._times: list[StepTime] = []
        self._timed_step = -1
        self._last: tuple[ProcessSample, ...] = ()
        self._number = 0
        self._answer_due_ns: int | None = None
        self._due_ns: int | None = None
        self._found: list[SessionInput] = []

    def began(self, run: int, command: ProcessId, now_ns: int, start: RunStart | None = None) -> None:
        """``start``: how long earlier runs took until they were stable."""
        self._run = run
        self._start = start
        self._command = command
        self._began_s = seconds(now_ns)
        self._last = ()
        self._beats.clear()
        self._ring.begin()
        if self._judge is not None:
            self._judge.run_began(self._began_s, run, start)
        if self._slow is not None:
            self._slow.run_began(run)
        self._times.clear()
        self._timed_step = -1
        self._beaten = None
        self._due_ns = now_ns + self._period_ns

    def begins(self) -> None:
        """Before the command of a run begins."""
        if self._progress is not None:
            self._progress.run_begins()

    def ended(self) -> None:
        """The command has ended; others of the run may live on."""
        self._due_ns = self._answer_due_ns = None

    def last_progress(self, *, is_whole: bool) -> tuple[Progressed, ...]:
        """Nothing of the run is left. ``is_whole``: it ended by itself, and was not killed amid a write."""
        if self._progress is not None:
            number = self._progress.last_number(is_whole=is_whole)
        else:
            number = None if self._beaten is None else self._beaten.looked()
        return () if number is None else (self._progressed(number),)

    def next_deadline_ns(self) -> int | None:
        return min((each for each in (self._due_ns, self._answer_due_ns) if each is not None), default=None)

    def tick(self, now_ns: int) -> None:
        if self._answer_due_ns is not None and now_ns >= self._answer_due_ns:
            self._measure((), now_ns)
        if self._due_ns is None or now_ns < self._due_ns:
            return
        self._due_ns = now_ns + self._period_ns
        self._note_progress()
        if self._settings.mode is HangMode.OFF:
            return
        self._number += 1
        step_s, start_s = (None, None) if self._judge is None else self._judge.limits()
        if self._ask(self._number, now_ns, step_s, start_s):
            self._answer_due_ns = now_ns + min(ANSWER_WITHIN_NS, self._period_ns // 2)
        else:
            self._measure((), now_ns)

    def answered(self, chips: ChipReadings, now_ns: int) -> None:
        """An answer that is too late is of no use: that sample is made."""
        if self._answer_due_ns is not None and chips.number == self._number:
            self._measure(chips.chips, now_ns)

    def beaten(self, received: Iterable[Beat | StepTime], now_ns: int) -> None:
        """A checkpoint that is reported is whole, and progress at once. A step's first time is a beat."""
        from nodeagent.job.sample import Beat

        beats = list[Beat]()
        for each in received:
            if isinstance(each, Beat):
                beats.append(each)
            else:
                self._times.append(each)
                self._found += self._judging_slow().timed(each)
                if each.step > self._timed_step:
                    self._timed_step = each.step
                    beats.append(Beat(t_s=each.t_s, step=each.step))
        del self._times[:-MAX_BEATS]
        if beats:
            self._take_beats(beats, now_ns)

    def _take_beats(self, beats: Iterable[Beat], now_ns: int) -> None:
        if self._beaten is None:
            from nodeagent.job.watching.progress import ByBeats

            self._beaten = ByBeats()
        for beat in beats:
            self._beaten.beaten(beat)
            self._found += self._judging().beaten(beat)
            self._note_start(self._judging())
            self._beats.append(beat)
        del self._beats[:-MAX_BEATS]
        if self._progress is None and now_ns - self._noted_ns >= BETWEEN_CHECKPOINTS_NS:
            number = self._beaten.checkpoint()
            if number is not None:
                self._noted_ns = now_ns
                self._found.append(Progressed(run=self._run, number=number))

    def take(self) -> list[SessionInput]:
        """What was found since the last call."""
        found, self._found = self._found, []
        return found

    def ranks(self) -> tuple[ProcessId, ...]:
        """The ranks of the last sample: who holds a chip, else who has a rank, else all but launchers."""
        last = self._last
        chosen = (
            [each for each in last if each.holds]
            or [each for each in last if each.has_rank and not each.launcher]
            or [each for each in last if not each.launcher]
            or list(last)
        )
        return tuple(ProcessId(pid=each.pid, start_time=each.start_time) for each in chosen)

    def _note_start(self, judge: RunWatch) -> None:
        if judge.start is not None and judge.start != self._start:
            self._start = judge.start
            self._found.append(Armed(run=self._run, start=judge.start))

    def _note_progress(self) -> None:
        """A file that the user names is surer than what the program reports."""
        source = self._progress.next_number if self._progress is not None else None
        if source is None and self._beaten is not None:
            source = self._beaten.looked
        number = None if source is None else source()
        if number is not None:
            self._found.append(self._progressed(number))

    def _progressed(self, number: int) -> Progressed:
        beaten = None if self._progress is not None else self._beaten
        is_checkpoint = beaten is None or beaten.reports_checkpoints
        return Progressed(run=self._run, number=number, is_checkpoint=is_checkpoint)

    def _measure(self, chips: Sequence[ChipReading], now_ns: int) -> None:
        from nodeagent.job.sample import RunSample

        self._answer_due_ns = None
        assert self._command is not None
        if self._sampler is None:
            from nodeagent.job.watching.samples import Sampler

            self._sampler = Sampler(self._tree)
        has_times = self._slow is not None and self._slow.has_times
        self._last = self._sampler.measure(self._command, _holders(chips), waits=has_times)
        sample = RunSample(
            t_s=seconds(now_ns), processes=self._last, chips=tuple(_chip(each) for each in chips)
        )
        judge = self._judging()
        self._ring.keep(self._settings, sample, tuple(self._beats), tuple(self._times))
        self._found += judge.sampled(sample)
        self._found += self._judging_slow().sampled(sample)
        if self._shared_times is not None:
            self._found += self._shared_times.exchanged(self._judging_slow(), self._times)
        self._beats.clear()
        self._times.clear()
        self._note_start(judge)
        if self._shared is not None:
            self._found += self._shared.exchanged(judge, self._settings, self._run, sample.t_s)

    def _judging_slow(self) -> SlowWatch:
        if self._slow is None:
            from nodeagent.job.slow.watch import SlowWatch

            self._slow = SlowWatch(self._settings.kind)
            self._slow.run_began(self._run)
        return self._slow

    def _judging(self) -> RunWatch:
        if self._judge is None:
            from nodeagent.job.hang.watch import RunWatch

            self._judge = RunWatch(self._settings)
            self._judge.run_began(self._began_s, self._run, self._start)
        return self._judge


def _holders(chips: Sequence[ChipReading]) -> Mapping[int, tuple[str, ...]] | None:
    """The chips by the pid of who holds them; None where that is known of none."""
    if all(chip.holders is None for chip in chips):
        return None
    found: dict[int, tuple[str, ...]] = {}
    for chip in chips:
        for pid in chip.holders or ():
            found[pid] = (*found.get(pid, ()), chip.name)
    return found


def _chip(chip: ChipReading) -> ChipSample:
    from nodeagent.job.sample import ChipSample

    return ChipSample(
        name=chip.name,
        known=chip.known,
        util=chip.util,
        mem_util=chip.mem_util,
        power_w=chip.power_w,
        rx_bytes=chip.rx_bytes,
        tx_bytes=chip.tx_bytes,
        profiling=chip.profiling,
        handling=chip.handling,
        model=chip.model,
        clock_mhz=chip.clock_mhz,
        temperature_c=chip.temperature_c,
        power_limit_w=chip.power_limit_w,
        throttled=chip.throttled,
        link_errors=chip.link_errors,
    )
