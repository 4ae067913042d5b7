"""The variables of a run."""

from nodeagent.job.model import Counts, RunReason, variables_of_run


def test_a_run_is_told_which_it_is_and_why() -> None:
    assert variables_of_run(
        run=3, execution=2, why=RunReason.HEALED, counts=Counts(schedule=3), job="slurm:7.0"
    ) == {
        "MA_PROC_START_CNT": "2",
        "MA_SCHEDULE_CNT": "3",
        "NODEAGENT_RUN": "3",
        "NODEAGENT_WHY": "healed",
        "NODEAGENT_JOB": "slurm:7.0",
    }


def test_a_job_that_nobody_named_has_no_name() -> None:
    assert "NODEAGENT_JOB" not in variables_of_run(run=1, execution=1, why=RunReason.FIRST, counts=Counts())
