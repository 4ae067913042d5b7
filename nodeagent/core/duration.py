"""The duration rule: present strictly longer than its time-out, a fault takes the rule's level.

The other half, that it must be gone strictly longer than the recovery time, is ``clearing``.
"""

from dataclasses import replace

from nodeagent.core import frequency
from nodeagent.core.model import Condition, EventKind, Level
from nodeagent.core.state import State
from nodeagent.core.telling import tell
from nodeagent.core.verdict import stricter


def level_in_force(state: State, code: str, base: Level, timed_out: bool) -> Level:
    """The row's level, or the rule's once the time-out was reached, whichever is stricter."""
    rule = state.lookup.duration_rule(code) if timed_out else None
    return stricter(base, rule.level) if rule else base


def timed_out(state: State, condition: Condition) -> None:
    """This presence has lasted: raise the level, and count one occurrence."""
    at_ns = state.moment_ns
    level = level_in_force(state, condition.code, condition.base_level, True)
    after = replace(condition, judged=True, timed_out=True)
    if level != condition.level:
        after = replace(after, level=level, level_since_ns=at_ns, phase=0)
    state.put(after)
    if level != condition.level:
        why = f"present longer than the time-out of its duration rule: {condition.level} -> {level}"
        tell(state, EventKind.LEVEL_CHANGED, state.device(after.device_id), about=after, why=why)
    frequency.occurred(state, after, at_ns)
