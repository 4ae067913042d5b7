"""The level that a condition has: its row's, or what relation and duration rules make of it.

It decides no rule: whoever changes what the level follows from puts the condition by way of ``relevel``.

A condition ends: it is removed, an event says so, and what depends on it follows.

It ends that one alone: what went with it and is still there, ``closing.close`` sees to.
"""

from dataclasses import replace

from nodeagent.core.catalog.levels import milder, stricter
from nodeagent.core.judge.events import emit
from nodeagent.core.model import Backing, Condition, EventKind, Level
from nodeagent.core.rules import promotions, relation_pairs
from nodeagent.core.state.state import State


def level_in_force(state: State, condition: Condition) -> Level:
    """The row's level, or that of its relations, or the rule's once the time-out was reached, if stricter; of
    what is disregarded no more than that it is reported.
    """
    level = relation_pairs.level_by_relations(state.lookup, condition) or condition.base_level
    rule = state.lookup.facts(condition.code).duration if condition.timed_out else None
    level = stricter(level, rule.level) if rule else level
    disregarded = condition.backing is Backing.DISREGARDED
    return milder(level, Level.SUB_HEALTH) if disregarded else level


def relevel(state: State, before: Condition, after: Condition, why: str) -> Condition:
    """Put ``after`` with the level that is now in force, and emit an event where it changed."""
    level = level_in_force(state, after)
    if level == before.level:
        state.put(after)
        return after
    after = replace(after, level=level, level_since_ns=state.moment_ns, phase=0)
    state.put(after)
    text = f"{why}: {before.level} -> {level}"
    emit(state, EventKind.LEVEL_CHANGED, state.device(after.device_id), about=after, why=text)
    return after


def end(state: State, condition: Condition, why: str, *, goes_on: bool = False) -> None:
    """What went with it is left to the next poll: a reload raises nothing, nor does what makes way. What
    ``goes_on`` as part of another fault is still there for the rule that raised it.
    """
    if has_ended(state, condition):
        return
    state.drop(condition)
    if condition.rule and not goes_on:
        _measure_anew(state, condition)
    relation_pairs.remember_trace(state, condition)
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
