"""The level that a condition has: its row's, or what relation and duration rules make of it.

It decides no rule: whoever changes what the level follows from puts the condition by way of ``relevel``.
"""

from dataclasses import replace

from nodeagent.core.model import Backing, Condition, EventKind, Level
from nodeagent.core.rules import relation_pairs
from nodeagent.core.state.state import State
from nodeagent.core.verdicts.emit import emit
from nodeagent.core.verdicts.judge import milder, stricter


def level_in_force(state: State, condition: Condition) -> Level:
    """The row's level, or that of its relations, or the rule's once the time-out was reached, if stricter; of
    what is disregarded no more than that it is reported.
    """
    level = relation_pairs.level(state.lookup, condition) or condition.base_level
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
