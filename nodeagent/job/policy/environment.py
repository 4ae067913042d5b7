"""The variables that say to a run which run it is. Pure: the shell adds what it alone knows."""

from collections.abc import Mapping
from typing import Final

from nodeagent.job.model import Counts, Why

SCHEDULE_COUNT: Final = "MA_SCHEDULE_CNT"
PROCESS_COUNT: Final = "MA_PROC_START_CNT"
"""ModelArts' names ("Recovering a Training Job"): placements, and executions in this placement."""

HANG_DETECT_TIME: Final = "MA_HANG_DETECT_TIME"
POLICY_PREFIX: Final = "NODEAGENT_JOB_"
OF_THE_POLICY: Final = (POLICY_PREFIX, HANG_DETECT_TIME)
"""What a variable begins with that says what may be done to the job."""


def of_run(*, run: int, execution: int, why: Why, counts: Counts, job: str = "") -> Mapping[str, str]:
    """Set at each run. ``execution``: how often the command is begun in this placement, with this time."""
    variables = {
        PROCESS_COUNT: str(execution),
        SCHEDULE_COUNT: str(counts.schedule),
        "NODEAGENT_RUN": str(run),
        "NODEAGENT_WHY": why.value,
    }
    return {**variables, "NODEAGENT_JOB": job} if job else variables
