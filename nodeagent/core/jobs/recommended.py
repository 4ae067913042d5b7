"""What a scheduler does best with a job that uses this node: a pure function of what is known of the job.

It is a word for schedulers that do not know the levels. It asks nothing of the job itself.
"""

from collections.abc import Mapping
from typing import Final

from nodeagent.core.model import Handling, JobStage, Recommendation

_BY_STATUS: Final[Mapping[int | None, Recommendation]] = {
    75: Recommendation.RESCHEDULE,
    85: Recommendation.RESTART_IN_PLACE,
    86: Recommendation.RESCHEDULE_ISOLATED,
    87: Recommendation.GIVE_UP,
}
"""The statuses of a supervisor (``nodeagent.job.model.Status``). Any other is the command's own: what it
means is known to whoever wrote the command.
"""

_BY_HANDLING: Final[Mapping[Handling, Recommendation]] = {
    Handling.NONE: Recommendation.NONE,
    Handling.JOB_STRATEGY: Recommendation.NONE,
    Handling.RERUN_REQUEST: Recommendation.RERUN_REQUEST,
    Handling.RESTART_JOB: Recommendation.RESTART_IN_PLACE,
    Handling.RESET_WHEN_IDLE: Recommendation.NONE,
    Handling.STOP_RESET_RESTART: Recommendation.RESTART_IN_PLACE,
    Handling.RESCHEDULE: Recommendation.RESCHEDULE,
}


def recommended(
    handling: Handling, isolated: bool, stage: JobStage | None = None, status: int | None = None
) -> Recommendation:
    """``handling`` is the strictest on its chips and the node, ``isolated`` says that the node or a chip of
    it takes no new work. ``stage`` is None where nobody supervises the job; ``status`` is that of one that
    has ended, None where its supervisor died: then its scheduler knows as much.
    """
    if stage is JobStage.ENDED:
        return _BY_STATUS.get(status, Recommendation.NONE)
    if stage in (JobStage.ASKED, JobStage.HOLDING):
        return Recommendation.HOLD
    found = Recommendation.RESCHEDULE if stage is JobStage.LEAVING else _BY_HANDLING[handling]
    moves = found is Recommendation.RESCHEDULE
    return Recommendation.RESCHEDULE_ISOLATED if moves and isolated else found
