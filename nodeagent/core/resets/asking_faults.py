"""What justifies a reset: a real fault of the hardware that wants one, seen in this life of the daemon.

It judges single faults. What blocks a reset is in ``blockers``.
"""

from nodeagent.core.model import Backing, Condition, Reset
from nodeagent.core.state.state import State
from nodeagent.core.verdicts import recovery_action
from nodeagent.core.verdicts.judge import RESET_LEVELS


def wants(state: State, condition: Condition) -> bool:
    """A level that a reset ends, by a fault that a reset ends; not a drill's, not one that only restarts its
    job, and not one that only a kernel line reports.
    """
    if condition.level not in RESET_LEVELS:
        return False
    if (
        condition.injected
        or not condition.affect_verdict
        or recovery_action.only_restarts_its_job(state, condition)
    ):
        return False
    if condition.backing is not Backing.OWN:
        return False
    return state.lookup.facts(condition.code).clear_on.reset


def is_live(state: State, condition: Condition) -> bool:
    """Whether an observed chip shows the fault as present and not gone since, or reported it in this life.

    What only a reset clears stays open when its driver says that it has gone; it is not there for that.
    """
    era = state.era
    if condition.recovered_ns is not None or condition.boot_id != era.boot_id:
        return False
    has_gone = condition.last_ns > condition.occurred_ns
    return condition.present_ns is not None or (condition.occurred_ns >= era.started_ns and not has_gone)


def is_shown(condition: Condition) -> bool:
    """Whether the driver still shows it. What came but once may be over by itself."""
    return condition.present_ns is not None and condition.recovered_ns is None


def asking_conditions(state: State, reset: Reset) -> list[Condition]:
    """The faults that asked for the reset, are open, and would still."""
    keys = (("condition", condition_id) for condition_id in reset.conditions)
    found = (state.cells[Condition].get(key) for key in keys)
    return [condition for condition in found if condition is not None and wants(state, condition)]
