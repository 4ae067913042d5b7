"""Parts of which series are made: what processes do, what chips show, what a program tells."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from nodeagent.job.sample import Beat, ChipSample, ProcessSample, ProgramPhase, RunSample
from nodeagent.job.series import Header, SampleSeries, SeriesRow

PERIOD_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Does:
    """What a process does. ``wave_s``: it works for half of each such time only. ``mapped``: what it writes
    goes through a mapping of memory. ``burst``: so many bytes each ``burst_s``.
    """

    bytes: float = 0.0
    calls: float = 0.0
    cpu: float = 0.0
    state: str = "S"
    wave_s: float = 0.0
    mapped: bool = False
    burst: float = 0.0
    burst_s: float = 600.0
    readable: bool = True


TRAINS: Final = Does(bytes=20e6, calls=400, cpu=40)
"""A rank that loads its data itself."""

LEAN: Final = Does(bytes=800, calls=2, cpu=30)
"""A rank whose data is on the chip: it writes a heartbeat, no more."""

SLEEPS: Final = Does()
SPINS: Final = Does(cpu=59)
LAUNCHES: Final = Does(bytes=9_000, calls=3.6, cpu=0.6)
"""torchrun with two ranks that stand still: about nine reads and nine writes in five seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shows:
    """What a chip shows. ``spread``: how far its use goes up and down. ``traffic``: bytes per second."""

    use: float
    spread: float = 0.0
    power: float | None = 100.0
    traffic: float | None = None
    wave_s: float = 0.0
    known: bool = True
    profiling: bool = False
    handling: str = "NONE"
    is_reset: bool = False


NPU_WORKS: Final = Shows(use=60, spread=25, power=250)
NPU_IDLE: Final = Shows(use=0, power=90)
GPU_WORKS: Final = Shows(use=93, spread=6, power=550, traffic=5e9)
GPU_STEADY: Final = Shows(use=99, spread=0.5, power=550, traffic=5e9)
GPU_WAITS: Final = Shows(use=100, power=160, traffic=0)
"""It waits in a collective: full use, no work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beating:
    """Beats of the program. ``advances``: the step grows with each. ``step``: it goes on from there."""

    every_s: float
    phase: ProgramPhase = ProgramPhase.TRAIN
    advances: bool = True
    step: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """For so many minutes. ``one_rank`` and ``one_chip``: what the first does instead. ``helpers``: other
    processes of the tree, by name. ``relaunched``: the launcher has begun all ranks anew. ``unseen``: no
    sample was taken. ``spawns``: processes that each live for a sample.
    """

    minutes: float
    ranks: Does
    chips: Shows | None
    one_rank: Does | None = None
    one_chip: Shows | None = None
    launcher: Does = LAUNCHES
    helpers: Mapping[str, Does] = field(default_factory=dict)
    beats: Beating | None = None
    relaunched: bool = False
    unseen: bool = False
    spawns: int = 0


def series(
    name: str,
    *acts: Act,
    ranks: int = 4,
    minutes: float = 30,
    kind: str = "training",
    holders: bool = True,
    period_s: float = PERIOD_S,
) -> SampleSeries:
    """The same for the same words. ``minutes``: the hang time."""
    header = Header(name=name, T_min=minutes, period_s=period_s, kind=kind)
    return SampleSeries(header=header, rows=tuple(_Scene(name, ranks, period_s, holders=holders).rows(acts)))


@dataclass(slots=True)
class _Counters:
    pid: int
    bytes: float = 0.0
    mapped: float = 0.0
    calls: float = 0.0
    cpu_s: float = 0.0
    burst_at_s: float = 0.0

    def go_on(self, does: Does, now_s: float, period_s: float, noise: float) -> None:
        if not does.wave_s or now_s % does.wave_s < does.wave_s / 2:
            moved = does.bytes * period_s * noise
            self.bytes += 0 if does.mapped else moved
            self.mapped += moved if does.mapped else 0
            self.calls += does.calls * period_s * noise
            self.cpu_s += does.cpu * period_s / 60 * noise
        if does.burst and now_s >= self.burst_at_s:
            self.bytes += does.burst
            self.calls += 300
            self.burst_at_s = now_s + does.burst_s

    def sample(self, does: Does, *, holds: bool | None, chip: str, launcher: bool = False) -> ProcessSample:
        is_readable = does.readable
        halves, calls = int(self.bytes / 2), int(self.calls / 2)
        return ProcessSample(
            pid=self.pid,
            ppid=1 if launcher else 100,
            holds=holds,
            has_rank=bool(chip),
            launcher=launcher,
            state=does.state,
            cpu_s=round(self.cpu_s, 2),
            chips=(chip,) if holds and chip else (),
            read_bytes=0 if is_readable else None,
            write_bytes=int(self.mapped) if is_readable else None,
            rchar=halves if is_readable else None,
            wchar=halves if is_readable else None,
            syscr=calls if is_readable else None,
            syscw=calls if is_readable else None,
        )


class _Scene:
    def __init__(self, name: str, ranks: int, period_s: float, *, holders: bool) -> None:
        self._random = random.Random(name)
        self._period_s = period_s
        self._holders = holders
        self._next_pid = 200
        self._launcher = _Counters(pid=100)
        self._ranks = [self._process() for _ in range(ranks)]
        self._helpers: dict[str, _Counters] = {}
        self._traffic = [0.0] * ranks
        self._now_s = 0.0
        self._step = 0

    def rows(self, acts: tuple[Act, ...]) -> Iterator[SeriesRow]:
        for act in acts:
            if act.relaunched:
                self._ranks = [self._process() for _ in self._ranks]
                self._helpers = {}
            self._step = act.beats.step if act.beats and act.beats.step is not None else self._step
            began_s, beat_s = self._now_s, self._now_s
            while self._now_s < began_s + act.minutes * 60 - 1e-6:
                self._now_s += self._period_s
                row = self._row(act, beat_s)
                beat_s = row.beats[-1].t_s if row.beats else beat_s
                if not act.unseen:
                    yield row

    def _row(self, act: Act, beat_s: float) -> SeriesRow:
        processes = [self._go_on(self._launcher, act.launcher, launcher=True)]
        for index, rank in enumerate(self._ranks):
            does = act.one_rank if index == 0 and act.one_rank else act.ranks
            processes.append(self._go_on(rank, does, chip=f"chip{index}"))
        for name, does in act.helpers.items():
            if name not in self._helpers:
                self._helpers[name] = self._process()
            processes.append(self._go_on(self._helpers[name], does))
        processes += [self._go_on(self._process(), Does(cpu=20)) for _ in range(act.spawns)]
        chips = tuple(self._chip(act, index) for index in range(len(self._ranks)) if act.chips)
        return SeriesRow(
            sample=RunSample(t_s=self._now_s, processes=tuple(processes), chips=chips),
            beats=tuple(self._beats(act.beats, beat_s)) if act.beats else (),
        )

    def _process(self) -> _Counters:
        self._next_pid += 1
        return _Counters(pid=self._next_pid)

    def _go_on(
        self, counters: _Counters, does: Does, *, chip: str = "", launcher: bool = False
    ) -> ProcessSample:
        counters.go_on(does, self._now_s, self._period_s, self._random.uniform(0.7, 1.3))
        holds = bool(chip) if self._holders else None
        return counters.sample(does, holds=holds, chip=chip, launcher=launcher)

    def _chip(self, act: Act, index: int) -> ChipSample:
        shows = act.one_chip if index == 0 and act.one_chip else act.chips
        assert shows is not None
        rests = bool(shows.wave_s) and self._now_s % shows.wave_s >= shows.wave_s / 2
        self._traffic[index] = 0.0 if shows.is_reset else self._traffic[index]
        self._traffic[index] += 0 if rests else (shows.traffic or 0.0) * self._period_s
        use = 0.0 if rests else shows.use + self._random.uniform(-shows.spread, shows.spread)
        return ChipSample(
            name=f"chip{index}",
            known=shows.known,
            util=min(100.0, max(0.0, round(use))) if shows.known else None,
            power_w=None if shows.power is None else shows.power * self._random.uniform(0.97, 1.03),
            rx_bytes=None if shows.traffic is None else int(self._traffic[index]),
            tx_bytes=None if shows.traffic is None else int(self._traffic[index]),
            profiling=shows.profiling,
            handling=shows.handling,
        )

    def _beats(self, beats: Beating, beat_s: float) -> Iterator[Beat]:
        while beat_s + beats.every_s <= self._now_s:
            beat_s += beats.every_s
            self._step += 1 if beats.advances else 0
            yield Beat(t_s=beat_s, step=self._step, phase=beats.phase)
