"""Series of a run whose ranks and chips are alike but for what a case changes.

In each step every rank computes for a while and then waits for the slowest, as synchronous training does. The
time between steps is the same for all; chips show what they do in that time.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from nodeagent.job.sample import ChipSample, ProcessSample, RunSample, StepTime
from nodeagent.job.series import Header, SampleSeries, SeriesRow

PERIOD_S: Final = 10.0

Share = Callable[[int, int], float]
"""(rank, step) -> how long it computes, as a share of the usual time."""

Group = Callable[[int], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """What a chip shows while its rank computes; while it waits, ``waits`` of its use and power."""

    clock: float = 1800
    use: float = 98
    power: float = 550
    temperature: float = 60
    limit: float | None = 700
    throttled: tuple[str, ...] = ()
    model: str = "H100"
    errors_per_s: float = 0.0


GPU: Final = Chip()
NPU: Final = Chip(clock=1500, use=85, power=280, limit=None, model="910B")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """``noise``: how much the times of one rank vary, as a share. ``waits``: what a chip that waits shows of
    its use, and of its power: NVIDIA's report full use, Ascend's none. ``times``: the program reports its
    step times; ``lost``: so many of them do not arrive.
    """

    minutes: float
    ranks: int = 4
    step_s: float = 1.0
    share: Share = lambda _rank, _step: 1.0
    noise: float = 0.04
    group: Group = lambda _rank: ""
    chips: Callable[[int, float], Chip] | None = None
    waits: tuple[float, float] = (1.0, 0.4)
    times: bool = True
    lost: float = 0.0
    kind: str = "training"
    cpu_wait: Callable[[int], float] = lambda _rank: 0.0


def series(name: str, scene: Scene) -> SampleSeries:
    """The same for the same words."""
    header = Header(name=name, T_min=30, period_s=PERIOD_S, kind=scene.kind)
    return SampleSeries(header=header, rows=tuple(_Player(name, scene).rows()))


class _Player:
    def __init__(self, name: str, scene: Scene) -> None:
        self._random = random.Random(name)
        self._scene = scene
        self._step = 0
        self._now_s = 0.0
        self._busy = [1.0] * scene.ranks

    def rows(self) -> Iterator[SeriesRow]:
        pending = list[StepTime]()
        sample_s = PERIOD_S
        while sample_s <= 60 * self._scene.minutes:
            while self._now_s < sample_s:
                pending += self._next_step()
            due = tuple(each for each in pending if each.t_s <= sample_s)
            pending = [each for each in pending if each.t_s > sample_s]
            yield SeriesRow(sample=self._sample(sample_s), times=due)
            sample_s += PERIOD_S

    def _next_step(self) -> list[StepTime]:
        scene = self._scene
        self._step += 1
        took = [
            scene.step_s * scene.share(rank, self._step) * max(0.1, self._random.gauss(1, scene.noise))
            for rank in range(scene.ranks)
        ]
        slowest = max(took)
        self._now_s += slowest
        self._busy = [each / slowest for each in took]
        if not scene.times:
            return []
        order = self._random.sample(range(scene.ranks), scene.ranks)
        return [
            StepTime(
                t_s=self._now_s,
                step=self._step,
                compute_s=took[rank],
                rank=rank,
                group=scene.group(rank),
                pid=200 + rank,
            )
            for rank in order
            if self._random.random() >= scene.lost
        ]

    def _sample(self, t_s: float) -> RunSample:
        ranks = range(self._scene.ranks)
        processes = [ProcessSample(pid=100, ppid=1, launcher=True)]
        processes += [
            ProcessSample(
                pid=200 + rank,
                ppid=100,
                holds=True,
                has_rank=True,
                chips=(f"chip{rank}",),
                cpu_wait_s=self._scene.cpu_wait(rank) * t_s,
            )
            for rank in ranks
        ]
        chips = tuple(self._chip(rank, t_s) for rank in ranks) if self._scene.chips else ()
        return RunSample(t_s=t_s, processes=tuple(processes), chips=chips)

    def _chip(self, rank: int, t_s: float) -> ChipSample:
        scene = self._scene
        assert scene.chips is not None
        shows, busy = scene.chips(rank, t_s), self._busy[rank]
        use, power = (busy + (1 - busy) * each for each in scene.waits)
        return ChipSample(
            name=f"chip{rank}",
            util=round(min(100.0, shows.use * use * self._random.uniform(0.98, 1.02)), 1),
            power_w=round(shows.power * power * self._random.uniform(0.97, 1.03), 1),
            model=shows.model,
            clock_mhz=round(shows.clock * self._random.uniform(0.98, 1.02)),
            temperature_c=shows.temperature,
            power_limit_w=shows.limit,
            throttled=shows.throttled,
            link_errors=int(shows.errors_per_s * t_s),
        )
