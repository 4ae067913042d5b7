"""New tables over readings: what a threshold or counter rule that is gone or changed leaves behind.

A rule that is gone takes its fault with it, for nobody would ever say that it is over. One whose bounds
changed forgets what it was still waiting for: the next reading begins it anew, so that a reload raises
nothing.
"""

from nodeagent.core import condition_end
from nodeagent.core.catalog import CounterRule, ThresholdRule
from nodeagent.core.lookup import Lookup
from nodeagent.core.model import Condition, Crossing, Tally
from nodeagent.core.state import State


def review(state: State, before: Lookup) -> None:
    """After a change of the catalog; ``before`` is what judged until now."""
    for crossing in state.all(Crossing):
        old, new = before.threshold_by_id(crossing.rule), state.lookup.threshold_by_id(crossing.rule)
        awaits_other_bounds = not crossing.raised and not _asks_the_same(old, new)
        if awaits_other_bounds or not _is_the_same_fault(old, new):
            state.drop(crossing)
    for tally in state.all(Tally):
        if not _is_the_same_fault(before.counter_by_id(tally.rule), state.lookup.counter_by_id(tally.rule)):
            state.drop(tally)
    for condition in state.all(Condition):
        if condition.rule and not _may_end(before, state.lookup, condition.rule):
            why = f"its rule {condition.rule} was removed from the tables"
            condition_end.end(state, condition, why)


def _is_the_same_fault(
    old: ThresholdRule | CounterRule | None, new: ThresholdRule | CounterRule | None
) -> bool:
    return old is not None and new is not None and (old.code, old.metric) == (new.code, new.metric)


def _asks_the_same(old: ThresholdRule | None, new: ThresholdRule | None) -> bool:
    if old is None or new is None:
        return False
    return (old.above, old.clear_below, old.for_ns) == (new.above, new.clear_below, new.for_ns)


def _may_end(before: Lookup, after: Lookup, rule_id: str) -> bool:
    """Whether the rule may still say that what it raised is over."""
    return _is_the_same_fault(
        before.threshold_by_id(rule_id), after.threshold_by_id(rule_id)
    ) or _is_the_same_fault(before.counter_by_id(rule_id), after.counter_by_id(rule_id))
