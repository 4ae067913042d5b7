"""The duration rule: present strictly longer than its time-out, a fault takes the rule's level, until it was
gone strictly longer than its recovery time.

One occurrence is one such passage. While the level is in force further presences are of the same occurrence:
one that lasts as long keeps a standing promotion alive, and a shorter one does not even that. A ``once`` is
no presence: it neither begins, prolongs nor interrupts one or its recovery time, and holds its condition at
the row's own level.
(Ascend's device-plugin counts so too: ``handleFaultQueue`` in its ``pkg/common/fault_code.go``.)
"""

from dataclasses import replace

from nodeagent.core.faults import conditions
from nodeagent.core.model import Condition
from nodeagent.core.rules import frequency, promotions
from nodeagent.core.state.state import State


def timed_out(state: State, condition: Condition) -> None:
    """This presence has lasted: raise the level, and count one occurrence where it was not in force."""
    after = replace(condition, judged=True, timed_out=True)
    after = conditions.relevel(
        state, condition, after, "present longer than the time-out of its duration rule"
    )
    promotions.present(state, after)
    if not condition.timed_out:
        frequency.occurred(state, after, state.moment_ns)


def ended(state: State, condition: Condition) -> None:
    """It was gone for longer than its recovery time, and a ``once`` holds it: at the row's own level."""
    after = replace(condition, present_ns=None, recovered_ns=None, judged=False, timed_out=False)
    conditions.relevel(state, condition, after, "gone longer than the recovery time of its duration rule")
