"""How a condition begins: its fields by the tables and by what occurred near it, and its event.

A code that no row names has the severity that its driver gives. What a driver has once given for a code holds
for that code on every device. Whether a condition opens, and what it counts for, is decided in ``signals``.
"""

from dataclasses import replace

from nodeagent.core.catalog.lookup import Facts, Fault, classify, is_undecided
from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.faults import conditions, kernel_lines
from nodeagent.core.judge.events import emit
from nodeagent.core.model import (
    Assertion,
    Backing,
    Belief,
    Condition,
    Device,
    DeviceProcesses,
    EventKind,
    Grade,
    Kind,
    Level,
    Origin,
    Presence,
    Severity,
    Signal,
    Trace,
)
from nodeagent.core.rules import kinds, relation
from nodeagent.core.state import limits
from nodeagent.core.state.state import EngineState

ONE_CAUSE = "the same unknown code came on another chip: one cause"
_SHARED_NS = 30 * SECOND_NS
"""Two chips that show an unknown code within this time have a common cause, not a broken chip each."""


def severity_of(state: EngineState, signal: Signal, facts: Facts) -> int | None:
    """The severity that the signal reports, else the one learnt for the code."""
    learnt = state.get(Severity, facts.key)
    return signal.severity if signal.severity is not None or learnt is None else learnt.severity


def learn_severity(state: EngineState, facts: Facts, severity: int | None) -> bool:
    """The driver has reported how severe a code is: open conditions are judged by it. True if it was new."""
    if severity is None:
        return False
    learnt = state.get(Severity, facts.key)
    if learnt is not None and learnt.severity == severity:
        return False
    limits.remember(state, Severity(code=facts.key, severity=severity))
    for device in state.all(Device) if facts.row is None else ():
        condition = state.condition(device.id, facts.key)
        if condition is not None and condition.grade.unknown:
            fault = classify(state.lookup, condition.source, facts, severity)
            grade = replace(condition.grade, severity=severity, base_level=fault.level)
            conditions.relevel(
                state, condition, replace(condition, grade=grade), "the driver gave its severity"
            )
    return True


def lowered_if_shared(state: EngineState, condition: Condition) -> Condition:
    """An undecided code that two chips show is hardly two broken chips: no new jobs, no more.

    Returns the condition, which may not be put yet, as it is then; those of other chips are put.
    """
    on_chip = state.device(condition.device_id).kind is Kind.CHIP
    if not on_chip or not is_undecided(state.lookup, condition):
        return condition
    others = _shown_elsewhere(state, condition)
    for other in others:
        if isinstance(other, Condition) and is_undecided(state.lookup, other):
            conditions.relevel(state, other, _lowered(other), ONE_CAUSE)
    lowers = bool(others) and condition.grade.base_level is not Level.PRE_SEPARATE_NPU
    return _lowered(condition) if lowers else condition


def _lowered(condition: Condition) -> Condition:
    return replace(condition, grade=replace(condition.grade, base_level=Level.PRE_SEPARATE_NPU))


def _shown_elsewhere(state: EngineState, condition: Condition) -> list[Condition | Trace]:
    key = state.lookup.facts(condition.code).key
    found: list[Condition | Trace] = []
    for chip in state.all(Device):
        if chip.kind is not Kind.CHIP or chip.id == condition.device_id:
            continue
        other = state.condition(chip.id, key) or state.get(Trace, chip.id, key)
        if other is not None and abs(condition.occurred_ns - other.occurred_ns) <= _SHARED_NS:
            found.append(other)
    return found


def condition_of(
    state: EngineState,
    device: Device,
    signal: Signal,
    facts: Facts,
    fault: Fault,
    *,
    at_ns: int,
    occurred_ns: int,
    rule: str = "",
) -> Condition:
    """As it begins at ``at_ns``; not put yet. ``occurred_ns`` is its newest occurrence, maybe before that."""
    suffix = limits.INJECTED if signal.injected else ""
    key = limits.number_of_code(facts.key, signal.injected)
    held = state.get(DeviceProcesses, state.chip_of(device).id)
    condition = Condition(
        id=limits.next_id(state, Condition, device.id, facts.code + suffix, key),
        device_id=device.id,
        code=facts.code,
        name=fault.name,
        source=signal.source,
        presence=_presence_of(signal, at_ns, occurred_ns, state.era.boot_id),
        grade=Grade(
            base_level=fault.level,
            level=fault.level,
            level_since_ns=at_ns,
            severity=severity_of(state, signal, facts),
            unknown=fault.unknown,
            affects=fault.affects,
            affect_verdict=signal.affect_verdict,
            user_induced=fault.user_induced,
        ),
        backing=Backing(belief=_belief(state, device, signal, facts, occurred_ns), evidence=signal.evidence),
        origin=Origin(
            rule=rule,
            injected=signal.injected,
            users=held.holders if held else None,
            report=signal.report,
            reported_ns=at_ns if signal.report is not None else 0,
        ),
    )
    condition = relation.joined(state, lowered_if_shared(state, condition))
    level = conditions.level_in_force(state, condition)
    return replace(condition, grade=replace(condition.grade, level=level))


def _presence_of(signal: Signal, at_ns: int, occurred_ns: int, boot_id: str) -> Presence:
    return Presence(
        opened_ns=at_ns,
        last_ns=at_ns,
        count=signal.count,
        present_ns=at_ns if signal.assertion is Assertion.OCCUR else None,
        boot_id=boot_id,
        occurred_ns=occurred_ns,
        once_ns=at_ns if signal.assertion is Assertion.ONCE else None,
    )


def begin(state: EngineState, device: Device, condition: Condition, why: str) -> None:
    """Put it, and emit its event."""
    state.put(condition)
    emit(state, EventKind.RAISED, device, about=condition, why=why)
    if condition.presence.present_ns is not None:
        kinds.present(state, condition)


def _belief(state: EngineState, device: Device, signal: Signal, facts: Facts, at_ns: int) -> Belief:
    return Belief.OWN if signal.injected else kernel_lines.belief(state, device, facts, signal.source, at_ns)
