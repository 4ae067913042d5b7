"""The kinds of rules: a new one is its file and a line here. What each does with a condition is done in this
order.
"""

from typing import Final

from nodeagent.core.catalog.lookup import Facts
from nodeagent.core.model import Condition, Grade, Level
from nodeagent.core.rules import common_cause, counter, duration, frequency, relation, threshold
from nodeagent.core.rules.kind import Raising, RuleKind
from nodeagent.core.state.state import EngineState

RULE_KINDS: Final[tuple[RuleKind, ...]] = (
    relation.KIND,
    duration.KIND,
    frequency.KIND,
    threshold.KIND,
    counter.KIND,
    common_cause.KIND,
)
RAISING: Final[tuple[Raising, ...]] = tuple(kind.raising for kind in RULE_KINDS if kind.raising is not None)
"""Of those that raise a fault of their own."""

_LEVEL = tuple(kind.level for kind in RULE_KINDS if kind.level is not None)
_OCCURRED = tuple(kind.occurred for kind in RULE_KINDS if kind.occurred is not None)
_PRESENT = tuple(kind.present for kind in RULE_KINDS if kind.present is not None)
_RECOVERED = tuple(kind.recovered for kind in RULE_KINDS if kind.recovered is not None)
_ENDED = tuple(kind.ended for kind in RULE_KINDS if kind.ended is not None)


def level(facts: Facts, grade: Grade) -> Level:
    """The level of the row, or what rules make of it."""
    found = grade.base_level
    for work_out in _LEVEL:
        found = work_out(facts, grade, found)
    return found


def occurred(state: EngineState, condition: Condition, at_ns: int, occurrences: int = 1) -> None:
    """Its fault occurred, as rules count: with a duration rule, that was judged by its presence."""
    for count in _OCCURRED:
        count(state, condition, at_ns, occurrences)


def present(state: EngineState, condition: Condition) -> None:
    """The fault is there, counted or not."""
    for take in _PRESENT:
        take(state, condition)


def recovered(state: EngineState, condition: Condition, at_ns: int) -> None:
    """The fault is no longer present."""
    for take in _RECOVERED:
        take(state, condition, at_ns)


def ended(state: EngineState, condition: Condition, *, goes_on: bool) -> None:
    """The condition is gone. What ``goes_on`` as part of another fault is still there for the rule that
    raised it.

    Where a person or a reset ended what a rule had raised, a reading that stays as it is raises it once more.
    """
    for take in _ENDED:
        take(state, condition)
    if not condition.origin.rule or goes_on:
        return
    for of in state.rule_cells:
        for cell in state.of_rule(of, condition.device_id, condition.origin.rule):
            if (after := cell.after_clear(state.moment_ns)) is not cell:
                state.put(after)
