"""A condition begins: what it is by the tables and by what stands near it; and its event.

Whether it should, and what it counts for, is for those who ask.
"""

from dataclasses import replace

from nodeagent.core.catalog import unknown_codes
from nodeagent.core.catalog.classify import Fault
from nodeagent.core.catalog.lookup import Facts
from nodeagent.core.faults import condition_level, kernel_lines
from nodeagent.core.model import Assertion, Backing, Condition, Device, EventKind, Held, Signal
from nodeagent.core.rules import promotions, relation_pairs
from nodeagent.core.state import limits
from nodeagent.core.state.state import State
from nodeagent.core.verdicts.emit import emit


def condition_of(
    state: State,
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
    held = state.get(Held, state.chip_of(device).id)
    condition = Condition(
        id=limits.next_id(state, Condition, device.id, facts.code + suffix, key),
        device_id=device.id,
        code=facts.code,
        name=fault.name,
        source=signal.source,
        base_level=fault.level,
        level=fault.level,
        opened_ns=at_ns,
        last_ns=at_ns,
        count=signal.count,
        present_ns=at_ns if signal.assertion is Assertion.OCCUR else None,
        level_since_ns=at_ns,
        held_by=held.holders if held else None,
        severity=unknown_codes.of_signal(state, signal, facts),
        unknown=fault.unknown,
        affects=fault.affects,
        user_induced=fault.user_induced,
        injected=signal.injected,
        affect_verdict=signal.affect_verdict,
        boot_id=state.era.boot_id,
        evidence=signal.evidence,
        occurred_ns=occurred_ns,
        rule=rule,
        backing=_backing(state, device, signal, facts, occurred_ns),
        once_ns=at_ns if signal.assertion is Assertion.ONCE else None,
        report=signal.report,
        reported_ns=at_ns if signal.report is not None else 0,
    )
    condition = relation_pairs.joined(state, unknown_codes.shared(state, condition))
    return replace(condition, level=condition_level.level_in_force(state, condition))


def begin(state: State, device: Device, condition: Condition, why: str) -> None:
    """Put it, and emit its event."""
    state.put(condition)
    emit(state, EventKind.RAISED, device, about=condition, why=why)
    if condition.present_ns is not None:
        promotions.present(state, condition)


def _backing(state: State, device: Device, signal: Signal, facts: Facts, at_ns: int) -> Backing:
    return (
        Backing.OWN if signal.injected else kernel_lines.backing(state, device, facts, signal.source, at_ns)
    )
