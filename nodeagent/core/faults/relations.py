"""What one fault does to another that occurred near it, by relation rules (``rules.relation`` finds the
pairs).

Xid 45 only follows whatever stopped the GPU: by ``then = "absorb"`` it is counted in that fault, its root,
and opens nothing. ``level`` gives ``code`` another level next to ``with``, ``cancel`` lets it close ``with``.
docs/tables.md describes each. The order at one occurrence: it is absorbed or opened; then come levels,
companions that came first, and what it cancels; only then do frequency rules count it.
"""

from nodeagent.core.catalog.catalog import RelationRule
from nodeagent.core.catalog.levels import PRECEDENCE
from nodeagent.core.catalog.lookup import Facts, Relations
from nodeagent.core.faults import conditions, ending
from nodeagent.core.judge.events import notice
from nodeagent.core.model import Assertion, Condition, Device, Level, Signal, Trace
from nodeagent.core.rules import frequency, relation
from nodeagent.core.state import limits
from nodeagent.core.state.cells import changed
from nodeagent.core.state.state import EngineState


def absorb(
    state: EngineState, device: Device, signal: Signal, facts: Facts, level: Level, at_ns: int, rule: str
) -> bool:
    """Attach an occurrence to its root. False where it has none: it is a fault of its own.

    ``level`` is what the condition has, or would have if it opened, ``rule`` what makes the signal, if any.
    """
    condition = state.condition(device.id, facts.key)
    newest_ns = max(at_ns, condition.occurred_ns if condition is not None else at_ns)
    is_there = signal.assertion is Assertion.OCCUR or (condition is not None and condition.presence.is_shown)
    root = ending.root_of(state, device.id, facts, level, newest_ns, is_there=is_there)
    if root is None:
        return False
    if condition is not None:
        count = condition.presence.count + signal.count
        presence = changed(condition.presence, occurred_ns=newest_ns, count=count)
        if signal.assertion is Assertion.OCCUR:
            presence = changed(presence, present_ns=at_ns, recovered_ns=None)
        _close_as_absorbed(state, changed(condition, presence=presence), root)
    else:
        _attach(state, device, root, facts.code, signal)
        if signal.assertion is Assertion.OCCUR and isinstance(root, Condition):
            ending.keep_companion(state, device.id, facts.key, signal.source, root, newest_ns, rule)
    passed(state, device, facts, level, newest_ns)
    return True


def occurred(state: EngineState, condition: Condition) -> Condition:
    """An occurrence was put in its condition: all that follows for it and for others. Returns the result."""
    facts = state.lookup.facts(condition.code)
    if facts.relations is None or condition.origin.injected:
        return condition
    device_id, at_ns = condition.device_id, condition.presence.occurred_ns
    ending.end_companion(state, device_id, facts.key)
    if facts.relations.levelled:
        _join(state, condition)
    _join_others(state, device_id, facts.key, facts.relations, at_ns)
    for rule in facts.relations.absorbing:
        for companion in relation.subjects(state, rule, device_id, facts.key, at_ns):
            _absorb_earlier(state, rule, condition.id, companion)
    _cancel(state, device_id, facts, at_ns)
    return state.get(Condition, condition.id) or condition


def passed(state: EngineState, device: Device, facts: Facts, level: Level, at_ns: int) -> bool:
    """What an occurrence that opens nothing still does to others: it makes pairs, and it cancels.

    True if it was remembered or changed anything.
    """
    assert facts.relations is not None, "asked of a code that no relation rule names"
    if facts.relations.as_with:
        trace = Trace(device_id=device.id, code=facts.key, level=level, occurred_ns=at_ns, root=False)
        limits.remember(state, trace)
    _join_others(state, device.id, facts.key, facts.relations, at_ns)
    cancelled = _cancel(state, device.id, facts, at_ns)
    return bool(facts.relations.as_with) or cancelled


# --------------------------------------------------------------------------- companions


def _attach(state: EngineState, device: Device, root: Condition | Trace, code: str, signal: Signal) -> None:
    if isinstance(root, Condition):
        ending.count_in_root(state, root.id, code, signal.count)
        return
    notice(
        state,
        device,
        code=code,
        why=f"goes with {root.code} on {state.device(root.device_id).name}, which is over",
        source=signal.source,
        count=signal.count,
        evidence=signal.evidence,
    )


def _absorb_earlier(state: EngineState, rule: RelationRule, root_id: str, companion: Condition) -> None:
    """The root has come: a companion that came first is no fault of its own."""
    root = state.get(Condition, root_id)
    assert root is not None, f"no root {root_id}"
    if PRECEDENCE[root.level] >= PRECEDENCE[companion.level]:
        frequency.uncount(state, companion, root.occurred_ns, rule.within_ns)
        _close_as_absorbed(state, companion, root)


def _close_as_absorbed(state: EngineState, companion: Condition, root: Condition | Trace) -> None:
    device = state.device(root.device_id)
    why = f"absorbed: it goes with {root.code} on {device.name}"
    ending.close(state, companion, why, goes_on=companion.presence.is_shown and isinstance(root, Condition))
    relation.remember_trace(state, companion, root=False)
    if isinstance(root, Condition):
        ending.count_in_root(state, root.id, companion.code, companion.presence.count)
        if companion.presence.is_shown:
            key, newest_ns = state.lookup.facts(companion.code).key, companion.occurred_ns
            ending.keep_companion(
                state, companion.device_id, key, companion.source, root, newest_ns, companion.origin.rule
            )


# --------------------------------------------------------------------------- levels and ends


def _join_others(state: EngineState, device_id: str, key: str, relations: Relations, at_ns: int) -> None:
    for rule in relations.levelling:
        for subject in relation.subjects(state, rule, device_id, key, at_ns):
            _join(state, subject)


def _join(state: EngineState, condition: Condition) -> None:
    after = relation.joined(state, condition)
    if after is not condition:
        conditions.relevel(
            state, condition, after, f"next to a related fault, by {after.grade.relations[-1]}"
        )


def _cancel(state: EngineState, device_id: str, facts: Facts, at_ns: int) -> bool:
    assert facts.relations is not None, "asked of a code that no relation rule names"
    cancelled = False
    for rule in facts.relations.cancelling:
        for fault in relation.ended_by(state, rule, device_id, facts.key, at_ns):
            ending.close(state, fault, f"cancelled by {facts.code}")
            cancelled = True
    return cancelled
