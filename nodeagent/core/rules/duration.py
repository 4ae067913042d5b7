"""The duration rule: present strictly longer than its time-out, a fault takes the rule's level, until it was
gone strictly longer than its recovery time.

One occurrence is one such passage. While the level is in force further presences are of the same occurrence:
one that lasts as long keeps a promotion in force, and a shorter one does not even that. A ``once`` is no
presence: it neither begins, prolongs nor interrupts one or its recovery time, and keeps its condition open at
the row's own level. (Ascend's device-plugin counts so too: ``handleFaultQueue`` in its
``pkg/common/fault_code.go``.)

When the times are over is worked out in ``deadlines``. Nothing here puts a condition.
"""

from dataclasses import replace
from typing import Final

from nodeagent.core.catalog.levels import stricter
from nodeagent.core.catalog.lookup import Facts
from nodeagent.core.model import Condition, Grade, Level, Presence
from nodeagent.core.rules.kind import RuleKind

TIMED_OUT: Final = "present longer than the time-out of its duration rule"
ENDED: Final = "gone longer than the recovery time of its duration rule"


def timed_out(condition: Condition) -> Condition:
    """This presence has lasted. It is an occurrence where the rule's level was not in force."""
    presence = replace(condition.presence, judged=True)
    return replace(condition, presence=presence, grade=replace(condition.grade, timed_out=True))


def ended(condition: Condition) -> Condition:
    """It was gone for longer than its recovery time, and a ``once`` keeps it open: at the row's own level."""
    return _put_back(condition, replace(condition.presence, present_ns=None, recovered_ns=None))


def without_rule(condition: Condition) -> Condition:
    """The tables have a duration rule for its code no more."""
    return _put_back(condition, condition.presence)


def _put_back(condition: Condition, presence: Presence) -> Condition:
    presence, grade = replace(presence, judged=False), replace(condition.grade, timed_out=False)
    return replace(condition, presence=presence, grade=grade)


def _level(facts: Facts, grade: Grade, level: Level) -> Level:
    rule = facts.duration if grade.timed_out else None
    return stricter(level, rule.level) if rule else level


KIND = RuleKind(name="duration", level=_level)
