"""The duration rule: present strictly longer than its time-out, a fault takes the rule's level, until it was
gone strictly longer than its recovery time.

One occurrence is one such passage. While the level is in force further presences are of the same occurrence:
one that lasts as long keeps a standing promotion alive, and a shorter one does not even that. A ``once`` is
no presence: it neither begins, prolongs nor interrupts one or its recovery time, and holds its condition at
the row's own level.
(Ascend's device-plugin counts so too: ``handleFaultQueue`` in its ``pkg/common/fault_code.go``.)
"""

from dataclasses import replace

from nodeagent.core import frequency, pairing
from nodeagent.core.model import Backing, Condition, EventKind, Level
from nodeagent.core.state import State
from nodeagent.core.telling import tell
from nodeagent.core.verdict import milder, stricter


def level_in_force(state: State, condition: Condition) -> Level:
    """The row's level, or that of its relations, or the rule's once the time-out was reached, if stricter; of
    what is disregarded no more than that it is told.
    """
    level = pairing.level(state.lookup, condition) or condition.base_level
    rule = state.lookup.facts(condition.code).duration if condition.timed_out else None
    level = stricter(level, rule.level) if rule else level
    disregarded = condition.backing is Backing.DISREGARDED
    return milder(level, Level.SUB_HEALTH) if disregarded else level


def timed_out(state: State, condition: Condition) -> None:
    """This presence has lasted: raise the level, and count one occurrence where it was not in force."""
    after = replace(condition, judged=True, timed_out=True)
    after = relevel(state, condition, after, "present longer than the time-out of its duration rule")
    frequency.present(state, after)
    if not condition.timed_out:
        frequency.occurred(state, after, state.moment_ns)


def ended(state: State, condition: Condition) -> None:
    """It was gone for longer than its recovery time, and a ``once`` holds it: at the row's own level."""
    after = replace(condition, present_ns=None, recovered_ns=None, judged=False, timed_out=False)
    relevel(state, condition, after, "gone longer than the recovery time of its duration rule")


def relevel(state: State, before: Condition, after: Condition, why: str) -> Condition:
    """Put ``after`` with the level that is now in force, and tell it where that is another one."""
    level = level_in_force(state, after)
    if level == before.level:
        state.put(after)
        return after
    after = replace(after, level=level, level_since_ns=state.moment_ns, phase=0)
    state.put(after)
    text = f"{why}: {before.level} -> {level}"
    tell(state, EventKind.LEVEL_CHANGED, state.device(after.device_id), about=after, why=text)
    return after
