"""The variables that tell a run which run it is, and those from which the count of placements is read.

Pure: mappings in, mappings out. What the user has set is never replaced, except the counts of this run.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from nodeagent.job.model import Counts, Why

SCHEDULE_COUNT: Final = "MA_SCHEDULE_CNT"
PROCESS_COUNT: Final = "MA_PROC_START_CNT"
"""ModelArts' names ("Recovering a Training Job"): placements, and runs in this placement; both from 1."""

SLURM_RESTARTS: Final = "SLURM_RESTART_COUNT"
"""How often Slurm has requeued the job, from 1; not set before: sbatch(1), "OUTPUT ENVIRONMENT VARIABLES"."""


def of_run(*, run: int, why: Why, counts: Counts, job: str = "") -> Mapping[str, str]:
    """Set at each run."""
    variables = {
        PROCESS_COUNT: str(run),
        SCHEDULE_COUNT: str(counts.schedule),
        "NODEAGENT_RUN": str(run),
        "NODEAGENT_WHY": why.value,
    }
    return {**variables, "NODEAGENT_JOB": job} if job else variables


def unless_set(environ: Mapping[str, str], *, error_file: str, beat_socket: str) -> Mapping[str, str]:
    """What a run gets where its user has said nothing else. ``error_file`` "": there is none.

    faulthandler shows the Python stacks of a run that hangs (Python, "faulthandler": ABRT is one of its
    signals); torch writes the error of a rank to the file (torch/distributed/elastic/multiprocessing/errors).
    """
    wanted = {"PYTHONFAULTHANDLER": "1", "TORCHELASTIC_ERROR_FILE": error_file}
    chosen = {name: value for name, value in wanted.items() if value and name not in environ}
    return {**chosen, "NODEAGENT_BEAT": beat_socket} if beat_socket else chosen


def counts_of_placement(environ: Mapping[str, str], kept: Counts | None) -> Counts:
    """The counts with which this placement begins. ``kept`` are those of the placements before, None where
    nothing was kept: then Slurm's own count is the least that was used.
    """
    restarts = _number(environ.get(SLURM_RESTARTS)) or 0
    counts = kept or Counts(placements=restarts)
    given = _number(environ.get(SCHEDULE_COUNT))
    return replace(counts, schedule=given or (restarts or counts.placements) + 1)


def _number(text: str | None) -> int | None:
    """None of what is no number from 1: these variables are others'."""
    return int(text) if text is not None and text.isascii() and text.isdigit() and int(text) > 0 else None
