"""The level that a condition has: its row's, or what relation and duration rules make of it.

It decides no rule: whoever changes what the level follows from puts the condition by way of ``relevel``.

A condition ends: it is removed, an event says so, and what depends on it follows.

It ends that one alone: what went with it and is still there, ``closing.close`` sees to.
"""

from dataclasses import replace

from nodeagent.core.catalog.levels import milder
from nodeagent.core.judge.events import emit
from nodeagent.core.model import Backing, Condition, EventKind, Level
from nodeagent.core.rules import kinds
from nodeagent.core.state.state import State


def level_in_force(state: State, condition: Condition) -> Level:
    """The row's level, or that of its relations, or the rule's once the time-out was reached, if stricter; of
    what is disregarded no more than that it is reported.
    """
    level = kinds.level(state.lookup, condition)
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
    kinds.ended(state, condition, goes_on=goes_on)
    emit(state, EventKind.CLEARED, state.device(condition.device_id), about=condition, why=why)
    kinds.recovered(state, condition, state.moment_ns)


def has_ended(state: State, condition: Condition) -> bool:
    """Where many end together, what one of them hid may have needed the place of another."""
    return state.get(Condition, condition.id) is None
