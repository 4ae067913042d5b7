"""The variables of a run, and the counts of a placement."""

import pytest

from nodeagent.job.environment import counts_of_placement, of_run, unless_set
from nodeagent.job.model import Counts, Why


def test_a_run_is_told_which_it_is_and_why() -> None:
    assert of_run(run=2, why=Why.HEALED, counts=Counts(schedule=3), job="slurm:7.0") == {
        "MA_PROC_START_CNT": "2",
        "MA_SCHEDULE_CNT": "3",
        "NODEAGENT_RUN": "2",
        "NODEAGENT_WHY": "healed",
        "NODEAGENT_JOB": "slurm:7.0",
    }


def test_a_job_that_nobody_named_has_no_name() -> None:
    assert "NODEAGENT_JOB" not in of_run(run=1, why=Why.FIRST, counts=Counts())


def test_what_the_user_has_set_stays() -> None:
    chosen = unless_set({}, error_file="/s/error.json", beat_socket="/s/beat")
    assert chosen == {
        "PYTHONFAULTHANDLER": "1",
        "TORCHELASTIC_ERROR_FILE": "/s/error.json",
        "NODEAGENT_BEAT": "/s/beat",
    }
    environ = {"PYTHONFAULTHANDLER": "", "TORCHELASTIC_ERROR_FILE": "/mine"}
    assert unless_set(environ, error_file="/s/error.json", beat_socket="") == {}


@pytest.mark.parametrize(
    ("environ", "kept", "schedule", "placements"),
    [
        ({}, None, 1, 0),
        ({"MA_SCHEDULE_CNT": "4"}, None, 4, 0),
        ({"SLURM_RESTART_COUNT": "2"}, None, 3, 2),
        ({"MA_SCHEDULE_CNT": "4", "SLURM_RESTART_COUNT": "2"}, None, 4, 2),
        ({"MA_SCHEDULE_CNT": "zero", "SLURM_RESTART_COUNT": "-1"}, None, 1, 0),
        ({}, Counts(schedule=1, placements=1), 2, 1),
        ({"SLURM_RESTART_COUNT": "5"}, Counts(schedule=2, placements=1), 6, 1),
    ],
)
def test_placements_are_counted_from_what_there_is(
    environ: dict[str, str], kept: Counts | None, schedule: int, placements: int
) -> None:
    counts = counts_of_placement(environ, kept)
    assert (counts.schedule, counts.placements) == (schedule, placements)


def test_what_was_kept_stays() -> None:
    kept = Counts(placements=2, placements_in_row=1, hangs=2, best=9, signature="x")
    assert counts_of_placement({"MA_SCHEDULE_CNT": "7"}, kept) == Counts(
        schedule=7, placements=2, placements_in_row=1, hangs=2, best=9, signature="x"
    )
