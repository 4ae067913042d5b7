"""What one node tells of its chips to who looks at all nodes of the job."""

from dataclasses import replace
from typing import Any

import pytest

from nodeagent.job.hang.watch import ChipsSeen, RunWatch
from nodeagent.job.model import HangMode
from nodeagent.job.sample import Beat
from nodeagent.job.series import SampleSeries
from tests.job.hang.cases import settings_of
from tests.job.hang.parts import (
    GPU_STEADY,
    GPU_WAITS,
    GPU_WORKS,
    NPU_IDLE,
    NPU_WORKS,
    SPINS,
    TRAINS,
    Act,
    series,
)

T_S = 600
WORKS = Act(minutes=30, ranks=TRAINS, chips=NPU_WORKS)
POLLS = Act(minutes=30, ranks=SPINS, chips=NPU_IDLE)
"""Its ranks poll, its chips idle: a node alone may not act on that."""

GPU_TRAINS = Act(minutes=30, ranks=TRAINS, chips=GPU_WORKS)
GPU_HANGS = Act(minutes=30, ranks=SPINS, chips=GPU_WAITS)


def seen(made: SampleSeries, *, beats: bool = False, **settings: Any) -> ChipsSeen:
    """At the end of the series. ``beats``: with a beat for each sample, of a step that advances."""
    watch = RunWatch(settings_of(made, **settings))
    for number, row in enumerate(made.rows):
        if beats:
            watch.beaten(Beat(t_s=row.sample.t_s, step=number))
        watch.sampled(row.sample)
    return watch.seen(made.rows[-1].sample.t_s)


def made_of(*acts: Act) -> SampleSeries:
    return series("a node", *acts, minutes=T_S / 60, ranks=2)


def test_chips_that_are_flat_are_told_whatever_the_ranks_do() -> None:
    found = seen(made_of(WORKS, POLLS))
    assert (found.flat_s >= T_S, found.idle_high_s) == (True, 0)


def test_chips_in_use_without_any_sign_of_work_are_told_as_such() -> None:
    found = seen(made_of(GPU_TRAINS, GPU_HANGS))
    assert (found.flat_s >= T_S, found.idle_high_s >= T_S, found.acts) == (True, True, True)


def test_a_steady_chip_at_full_power_is_flat_and_shows_work() -> None:
    found = seen(made_of(GPU_TRAINS, replace(GPU_HANGS, chips=GPU_STEADY)))
    assert (found.flat_s >= T_S, found.idle_high_s) == (True, 0)


def test_a_job_that_works_shows_nothing() -> None:
    assert seen(made_of(WORKS)) == ChipsSeen(0.0, 0.0, True)


def test_a_run_that_is_not_armed_shows_nothing() -> None:
    assert seen(made_of(POLLS)) == ChipsSeen(0.0, 0.0, False)


def test_a_run_whose_steps_advance_shows_nothing() -> None:
    assert seen(made_of(WORKS, POLLS), beats=True) == ChipsSeen(0.0, 0.0, False)


def test_what_cannot_be_read_is_not_flat() -> None:
    unread = replace(NPU_IDLE, known=False)
    assert seen(made_of(WORKS, replace(POLLS, chips=unread))).flat_s == 0


@pytest.mark.parametrize(
    "settings", [{"mode": HangMode.NOTIFY}, {"kind": "inference"}], ids=["notify", "inference"]
)
def test_only_a_policy_that_stops_a_run_that_hangs_acts(settings: dict[str, Any]) -> None:
    found = seen(made_of(GPU_TRAINS, GPU_HANGS), **settings)
    assert (found.idle_high_s >= T_S, found.acts) == (True, False)
