"""A condition ends: it is removed, an event says so, and what depends on it follows.

It ends that one alone: what went with it and is still there, ``closing.close`` sees to.
"""

from nodeagent.core.model import Condition, EventKind
from nodeagent.core.rules import promotions, relation_pairs
from nodeagent.core.state.state import State
from nodeagent.core.verdicts.emit import emit


def end(state: State, condition: Condition, why: str, *, goes_on: bool = False) -> None:
    """What went with it is left to the next poll: a reload raises nothing, nor does what makes way. What
    ``goes_on`` as part of another fault is still there for the rule that raised it.
    """
    if has_ended(state, condition):
        return
    state.drop(condition)
    if condition.rule and not goes_on:
        _measure_anew(state, condition)
    relation_pairs.remember(state, condition)
    emit(state, EventKind.CLEARED, state.device(condition.device_id), about=condition, why=why)
    if not condition.injected:
        promotions.recovered(state, condition, state.moment_ns)


def has_ended(state: State, condition: Condition) -> bool:
    """Where many end together, what one of them hid may have needed the place of another."""
    return state.get(Condition, condition.id) is None


def _measure_anew(state: State, condition: Condition) -> None:
    """A person or a reset ended what a rule had raised: a reading that stays as it is shows it once more.

    Where the rule itself says that it is over, nothing of this is left.
    """
    for of in state.rule_cells:
        for cell in state.of_rule(of, condition.device_id, condition.rule):
            if (after := cell.after_clear(state.moment_ns)) is not cell:
                state.put(after)
