"""Healthy jobs of many hours, by chance: whatever they do, nothing acts on them.

Jobs with a healthy past by chance, which then hang: that is confirmed, at its time.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

import pytest

from nodeagent.job.hang.watch import replay
from nodeagent.job.sample import ProgramPhase
from nodeagent.job.session.values import HangStage
from tests.job.hang.cases import settings_of
from tests.job.hang.parts import (
    GPU_STEADY,
    GPU_WAITS,
    GPU_WORKS,
    LEAN,
    NPU_IDLE,
    NPU_WORKS,
    SLEEPS,
    SPINS,
    TRAINS,
    Act,
    Beating,
    Does,
    Shows,
    series,
)

Chance = random.Random


def waits(minutes: float) -> Act:
    return Act(minutes=minutes, ranks=SLEEPS, chips=NPU_IDLE)


INTERRUPTIONS: Final[tuple[Callable[[Chance], Act], ...]] = (
    lambda chance: waits(chance.uniform(0.5, 25)),
    lambda chance: replace(
        waits(chance.uniform(1, 90)), ranks=Does(bytes=chance.uniform(2e6, 3e8), calls=90)
    ),
    lambda chance: replace(waits(chance.uniform(1, 90)), ranks=replace(SPINS, cpu=chance.uniform(9, 60))),
    lambda chance: replace(
        waits(chance.uniform(1, 90)), helpers={"writer": Does(bytes=chance.uniform(2e6, 3e8), cpu=1)}
    ),
    lambda chance: replace(
        waits(chance.uniform(1, 90)), helpers={"compiler": Does(cpu=chance.uniform(9, 60))}
    ),
    lambda chance: replace(waits(chance.uniform(1, 90)), spawns=chance.randint(1, 3)),
    lambda chance: replace(
        waits(chance.uniform(1, 120)), chips=Shows(use=chance.uniform(20, 80), spread=9, power=180)
    ),
    lambda chance: replace(
        waits(chance.uniform(1, 180)), one_rank=replace(SLEEPS, state=chance.choice("Tt"))
    ),
    lambda chance: replace(waits(chance.uniform(1, 180)), unseen=True),
    lambda chance: replace(waits(chance.uniform(1, 180)), chips=None),
    lambda chance: replace(waits(chance.uniform(1, 180)), chips=replace(NPU_IDLE, known=False)),
    lambda chance: replace(waits(chance.uniform(1, 180)), one_chip=replace(NPU_IDLE, profiling=True)),
    lambda chance: replace(waits(chance.uniform(1, 180)), one_chip=replace(NPU_IDLE, handling="RESCHEDULE")),
    lambda chance: replace(waits(chance.uniform(1, 80)), relaunched=True),
    lambda chance: Act(
        minutes=chance.uniform(1, 180),
        ranks=replace(LEAN, burst=chance.uniform(1e3, 1e7), burst_s=chance.uniform(60, 1800)),
        chips=replace(GPU_STEADY, power=chance.uniform(330, 550)),
    ),
    lambda chance: Act(
        minutes=chance.uniform(1, 180), ranks=LEAN, chips=replace(NPU_WORKS, wave_s=chance.uniform(60, 500))
    ),
)
"""Each with a reason why it does not train, or seems not to."""


def life(chance: Chance, hours: float, *, beats: bool) -> Iterator[Act]:
    """It trains, is interrupted, trains on: with beats it tells the phase of an interruption."""
    works = chance.choice((NPU_WORKS, GPU_WORKS))
    ranks = chance.choice((TRAINS, LEAN))
    left = hours * 60
    while left > 0:
        every_s = chance.uniform(5, 90)
        trains = Act(
            minutes=chance.uniform(4, 60),
            ranks=ranks,
            chips=works,
            beats=Beating(every_s=every_s) if beats else None,
        )
        pause = chance.choice(INTERRUPTIONS)(chance)
        if beats:
            phase = chance.choice(
                (ProgramPhase.EVAL, ProgramPhase.CHECKPOINT, ProgramPhase.COMPILE, ProgramPhase.LOAD)
            )
            pause = replace(
                pause, minutes=min(pause.minutes, 110), beats=Beating(every_s=10, phase=phase, advances=False)
            )
        left -= trains.minutes + pause.minutes
        yield trains
        yield pause


def wrong_ends(seed: int, hours: float) -> list[str]:
    chance = random.Random(f"healthy {seed}")
    made = series(
        f"healthy {seed}", *life(chance, hours, beats=seed % 2 == 1), ranks=2, holders=chance.random() < 0.8
    )
    return [
        f"{each.t_s:.0f} s: {each.hung.why}"
        for each in replay(made.rows, settings_of(made))
        if each.hung.what is HangStage.CONFIRMED and each.hung.acts
    ]


@pytest.mark.parametrize("seed", range(2))
def test_nothing_acts_on_a_healthy_job_of_a_day(seed: int) -> None:
    assert wrong_ends(seed, 24) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_nothing_acts_on_healthy_jobs_of_hundreds_of_hours(seed: int) -> None:
    assert wrong_ends(seed, 20) == []


HANGS_FOR_MIN = 35


@pytest.mark.parametrize("seed", range(12))
def test_a_hang_after_some_hours_is_confirmed_half_an_hour_later(seed: int) -> None:
    chance = random.Random(f"hang {seed}")
    past = list(life(chance, 4, beats=seed % 3 == 1))[:-1]
    trains = replace(past[0], minutes=chance.uniform(16, 60), beats=None)
    is_gpu = trains.chips is GPU_WORKS
    ranks = chance.choice((SPINS, SLEEPS)) if is_gpu else SLEEPS
    hangs = Act(
        minutes=HANGS_FOR_MIN,
        ranks=replace(ranks, burst=chance.choice((0, 5e6)), burst_s=chance.uniform(700, 1800)),
        chips=GPU_WAITS if is_gpu else NPU_IDLE,
        launcher=Does(bytes=chance.uniform(0, 1e6), calls=50, cpu=1),
    )
    made = series(f"hang {seed}", trains, *past, trains, hangs, ranks=3)
    began_s = made.rows[-1].sample.t_s - HANGS_FOR_MIN * 60

    acted = [
        each.t_s - began_s
        for each in replay(made.rows, settings_of(made))
        if each.hung.what is HangStage.CONFIRMED and each.hung.acts
    ]
    assert len(acted) == 1
    assert 0 < acted[0] <= made.header.T_min * 60 + 60
