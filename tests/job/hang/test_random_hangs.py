"""Jobs with a healthy past by chance, which then hang: that is confirmed, at its time."""

import random
from dataclasses import replace

import pytest

from nodeagent.job.hang.watch import replay
from nodeagent.job.session.values import HangStage
from tests.job.hang.cases import settings_of
from tests.job.hang.parts import GPU_WAITS, GPU_WORKS, NPU_IDLE, SLEEPS, SPINS, Act, Does, series
from tests.job.hang.test_healthy_jobs import life

HANGS_FOR_MIN = 35


@pytest.mark.parametrize("seed", range(20))
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
