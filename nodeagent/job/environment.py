"""The variables that tell a run which run it is."""

from collections.abc import Mapping

from nodeagent.job.model import Counts, Why


def of_run(*, run: int, why: Why, counts: Counts, job: str = "") -> Mapping[str, str]:
    """Set at each run. ``MA_SCHEDULE_CNT`` and ``MA_PROC_START_CNT`` are ModelArts' names (its page
    "Recovering a Training Job"): placements of the job, and runs in this placement, both from 1.
    """
    variables = {
        "MA_PROC_START_CNT": str(run),
        "MA_SCHEDULE_CNT": str(counts.schedule),
        "NODEAGENT_RUN": str(run),
        "NODEAGENT_WHY": why.value,
    }
    return {**variables, "NODEAGENT_JOB": job} if job else variables
