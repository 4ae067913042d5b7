"""Codes that no table names: as severe as the driver says, or as they come where it cannot say.

What the driver once said of a code holds for the code, on every device. It opens and closes nothing.
"""

from dataclasses import replace

from nodeagent.core.catalog.classify import classify, is_undecided
from nodeagent.core.catalog.lookup import Facts
from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.faults import condition_level
from nodeagent.core.model import Condition, Device, Kind, Level, Severity, Signal, Trace
from nodeagent.core.state import limits
from nodeagent.core.state.state import State

ONE_CAUSE = "the same unknown code came on another chip: one cause"
SHARED_NS = 30 * SECOND_NS
"""Two chips that show an unknown code within this time have a common cause, not a broken chip each."""


def of_signal(state: State, signal: Signal, facts: Facts) -> int | None:
    """What the signal says, else what was learnt of the code."""
    learnt = state.get(Severity, facts.key)
    return signal.severity if signal.severity is not None or learnt is None else learnt.severity


def learn(state: State, facts: Facts, severity: int | None) -> bool:
    """The driver has said how severe a code is: open conditions are judged by it. True if it was new."""
    if severity is None:
        return False
    learnt = state.get(Severity, facts.key)
    if learnt is not None and learnt.severity == severity:
        return False
    limits.remember(state, Severity(code=facts.key, severity=severity))
    for device in state.all(Device) if facts.row is None else ():
        condition = state.condition(device.id, facts.key)
        if condition is not None and condition.unknown:
            fault = classify(state.lookup, condition.source, facts, severity)
            after = replace(condition, severity=severity, base_level=fault.level)
            condition_level.relevel(state, condition, after, "the driver gave its severity")
    return True


def shared(state: State, condition: Condition) -> Condition:
    """An undecided code that two chips show is hardly two broken chips: no new jobs, no more.

    Returns the condition, which may not be put yet, as it is then; those of other chips are put.
    """
    on_chip = state.device(condition.device_id).kind is Kind.CHIP
    if not on_chip or not is_undecided(state.lookup, condition):
        return condition
    others = _shown_elsewhere(state, condition)
    for other in others:
        if isinstance(other, Condition) and is_undecided(state.lookup, other):
            lowered = replace(other, base_level=Level.PRE_SEPARATE_NPU)
            condition_level.relevel(state, other, lowered, ONE_CAUSE)
    lowers = bool(others) and condition.base_level is not Level.PRE_SEPARATE_NPU
    return replace(condition, base_level=Level.PRE_SEPARATE_NPU) if lowers else condition


def _shown_elsewhere(state: State, condition: Condition) -> list[Condition | Trace]:
    key = state.lookup.facts(condition.code).key
    found: list[Condition | Trace] = []
    for chip in state.all(Device):
        if chip.kind is not Kind.CHIP or chip.id == condition.device_id:
            continue
        other = state.condition(chip.id, key) or state.get(Trace, chip.id, key)
        if other is not None and abs(condition.occurred_ns - other.occurred_ns) <= SHARED_NS:
            found.append(other)
    return found
