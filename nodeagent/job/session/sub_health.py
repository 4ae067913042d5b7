"""A chip of the job works, and not well: the job stays, or leaves the node, as its strategy has it.

``graceExit`` leaves at the next checkpoint, so that nothing is computed twice; between two runs at once.
``forceExit`` leaves at once. The names are MindCluster's (``subHealthyStrategy``, docs/en/scheduling/api of
Ascend/mind-cluster); ``hotSwitch`` needs its operator, and is not done here. It costs a placement, and
without one that is left the job stays: the chip still works. A fault that was there before the job began is
never reported here: whoever placed the job has placed it there.
"""

from nodeagent.job.model import RunRequest, SubHealthyStrategy
from nodeagent.job.session.ending import conclude, stop
from nodeagent.job.session.state import EndCause, SessionPhase, SessionState, Transition

_LEAVES = (SubHealthyStrategy.GRACE_EXIT, SubHealthyStrategy.FORCE_EXIT)


def noted(transition: Transition, given: RunRequest) -> None:
    """In any phase: what the daemon reports now. Each change is printed once."""
    state = transition.state
    if given.sub_health == state.sub_health:
        return
    transition.change(sub_health=given.sub_health)
    if state.policy.sub_health not in _LEAVES or state.policy.placements is None:
        return
    if not given.sub_health:
        transition.print_message(f"{state.sub_health} no longer (sub-health): the job stays")
    else:
        transition.print_message(f"{given.sub_health} (sub-health): {_what_follows(transition.state)}")


def _what_follows(state: SessionState) -> str:
    if not _may_leave(state):
        return "the job stays, for all its placements are used"
    when = "now" if state.policy.sub_health is SubHealthyStrategy.FORCE_EXIT else "at its next checkpoint"
    return f"the job leaves this node {when} ({state.policy.sub_health.value})"


def is_leaving(state: SessionState) -> bool:
    """Whether no further run is to begin here."""
    return bool(state.sub_health) and _may_leave(state)


def _may_leave(state: SessionState) -> bool:
    policy = state.policy
    has_one_left = policy.placements is not None and state.counts.placements < policy.placements
    return policy.sub_health in _LEAVES and has_one_left


def wanted_while_running(transition: Transition) -> None:
    """The job may run on, as far as the daemon is concerned."""
    state = transition.state
    if is_leaving(state) and state.policy.sub_health is SubHealthyStrategy.FORCE_EXIT:
        transition.change(hung=None, evidence_due_ns=None)
        stop(transition, EndCause.SUB_HEALTH)


def saved(transition: Transition) -> None:
    """The run has written a checkpoint."""
    state = transition.state
    if state.phase is SessionPhase.RUNNING and is_leaving(state):
        transition.print_message(
            f"run {state.run} has written a checkpoint, and is stopped: {state.sub_health}"
        )
        stop(transition, EndCause.SUB_HEALTH)


def leave(transition: Transition) -> None:
    """Between two runs."""
    conclude(transition, EndCause.SUB_HEALTH)
