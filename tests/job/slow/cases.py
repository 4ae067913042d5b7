"""Named series: ranks that are slow, and what only looks like it."""

import random
from typing import Final

from tests.job.slow.parts import GPU, NPU, Chip, Scene

BEGINS: Final = 200
"""The step from which a rank is slow, where it was not from the first."""


def _half(rank: int, step: int) -> float:
    return 2.0 if rank == 2 and step >= BEGINS else 1.0


def _hot(rank: int, _t_s: float) -> Chip:
    return Chip(clock=900, power=380, temperature=93, throttled=("hw_thermal",)) if rank == 2 else GPU


SLOW: Final = {
    "half the speed": Scene(minutes=10, share=_half),
    "half the speed from its first step": Scene(minutes=5, share=lambda r, _: 2.0 if r == 2 else 1.0),
    "half the speed, steps of twenty seconds": Scene(minutes=120, step_s=20, share=_half),
    "half the speed, steps of a tenth of a second": Scene(minutes=5, step_s=0.1, share=_half),
    "two thirds of the speed, its chip is hot": Scene(
        minutes=20, share=lambda r, s: 1.5 if r == 2 and s >= BEGINS else 1.0, chips=_hot
    ),
    "three quarters of the speed": Scene(
        minutes=25, share=lambda r, s: 1.38 if r == 2 and s >= BEGINS else 1.0
    ),
    "half the speed, a fifth of the times is lost": Scene(minutes=10, share=_half, lost=0.2),
    "a processor short of time": Scene(minutes=10, share=_half, cpu_wait=lambda r: 0.45 if r == 2 else 0.01),
    "half the speed in the second stage of a pipeline": Scene(
        minutes=10,
        ranks=8,
        share=lambda r, s: (1.6 if r >= 4 else 1.0) * (2 if r == 6 and s >= BEGINS else 1),
        group=lambda r: f"stage{r // 4}",
    ),
    "ranks of eight chips": Scene(minutes=10, ranks=8, share=_half, chips=_hot),
}
"""Rank 2 is slow, but for the pipeline, where it is rank 6."""


def _one_in(steps: int, share: float, rank: int = 0) -> Scene:
    return Scene(minutes=60, share=lambda r, s: share if r == rank and s % steps == 0 else 1.0)


def _sequence_lengths(rank: int, step: int) -> float:
    return random.Random(f"{rank} {step}").lognormvariate(0, 0.4)


def _warm_up(rank: int, step: int) -> float:
    return 20.0 if step <= 2 and rank == 0 else 1.0


def _moves(rank: int, step: int) -> float:
    """Each five steps another expert has twice the tokens."""
    return 2.0 if step // 5 % 4 == rank else 1.0


LOOKALIKES: Final = {
    "a healthy hour": Scene(minutes=60),
    "a healthy hour of short steps": Scene(minutes=60, step_s=0.2, noise=0.1),
    "a healthy hour of long steps, eight chips": Scene(
        minutes=60, step_s=12, ranks=8, chips=lambda _r, _t: NPU, waits=(0.0, 0.3)
    ),
    "rank 0 evaluates in its time each hundred steps": _one_in(100, 60.0),
    "rank 0 writes a checkpoint in its time each twenty steps": _one_in(20, 8.0),
    "rank 3 waits for data each ten steps": _one_in(10, 5.0, rank=3),
    "rank 0 logs in each step": Scene(minutes=60, share=lambda r, _: 1.12 if r == 0 else 1.0),
    "rank 0 compiles in its first steps": Scene(minutes=60, share=_warm_up),
    "sequences of different lengths": Scene(minutes=60, share=_sequence_lengths),
    "sequences of different lengths#7": Scene(minutes=60, share=_sequence_lengths),
    "experts that get twice the tokens in turn": Scene(minutes=60, share=_moves),
    "stages of a pipeline, without groups": Scene(minutes=60, share=lambda r, _: (1.25, 1.0, 1.0, 1.4)[r]),
    "stages of a pipeline, each a group": Scene(
        minutes=60,
        ranks=8,
        share=lambda r, _: 1.9 if r >= 4 else 1.0,
        group=lambda r: f"stage{r // 4}",
    ),
    "a tenth slower": Scene(minutes=60, share=lambda r, _: 1.1 if r == 2 else 1.0),
    "two ranks": Scene(minutes=60, ranks=2, share=lambda r, _: 1.0 + r),
    "half of the ranks do twice the work": Scene(minutes=60, share=lambda r, _: 2.0 if r < 2 else 1.0),
    "all get slower together": Scene(minutes=60, share=lambda _, s: 2.0 if s > 900 else 1.0),
}
"""Of these the program reports its times."""

SLOW_CHIPS: Final = {
    "a hot chip": Scene(
        minutes=30, ranks=8, times=False, chips=_hot, share=lambda r, _: 2.0 if r == 2 else 1.0
    ),
    "a chip whose clock is held down, its peers wait idle": Scene(
        minutes=30,
        times=False,
        waits=(0.0, 0.3),
        share=lambda r, _: 1.8 if r == 2 else 1.0,
        chips=lambda r, _: Chip(clock=800, use=85, power=150, limit=None, model="910B") if r == 2 else NPU,
    ),
}
"""Chip 2 is slow by its own readings alone."""

CHIPS_LIKE_SLOW: Final = {
    "a healthy hour": Scene(minutes=60, ranks=8, times=False, chips=lambda _r, _t: GPU),
    "a chip with a lower power limit": Scene(
        minutes=60,
        times=False,
        chips=lambda r, _: Chip(clock=1300, power=395, limit=400) if r == 2 else GPU,
        share=lambda r, _: 1.4 if r == 2 else 1.0,
    ),
    "a chip whose clock somebody has set": Scene(
        minutes=60,
        times=False,
        chips=lambda r, _: Chip(clock=1200, power=350, throttled=("application_clocks",)) if r == 2 else GPU,
        share=lambda r, _: 1.5 if r == 2 else 1.0,
    ),
    "a rank with more to do is at its power limit": Scene(
        minutes=60,
        times=False,
        chips=lambda r, _: Chip(clock=1400, power=695) if r == 2 else Chip(clock=1900, power=600),
        share=lambda r, _: 1.5 if r == 2 else 1.0,
    ),
    "a rank with less to do": Scene(
        minutes=60,
        times=False,
        waits=(0.0, 0.3),
        chips=lambda r, _: Chip(clock=900, use=30, power=120) if r == 2 else GPU,
    ),
    "an older model among newer ones": Scene(
        minutes=60,
        times=False,
        chips=lambda r, _: Chip(clock=1300, power=390, model="A100") if r == 2 else GPU,
    ),
    "a service": Scene(minutes=60, times=False, chips=_hot, kind="inference"),
    "a chip that is hot for five minutes": Scene(
        minutes=60, times=False, chips=lambda r, t: _hot(r, t) if 1200 <= t < 1500 else GPU
    ),
    "two chips": Scene(
        minutes=60, ranks=2, times=False, chips=lambda r, _: GPU if r else Chip(clock=900, power=300)
    ),
}
