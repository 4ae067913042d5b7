"""The relation rule: two faults near each other are one incident, or a worse one, or one ends the other.

``code``, ``with`` (families too) and ``same`` say which faults; ``within`` how far apart their newest
occurrences may lie (``pairing``). Nothing is paired with itself, nor by what is not an occurrence.

- ``absorb``: ``code`` is a companion of ``with``, its root (Xid 45 after whatever stopped the GPU; an
  AI-core error that a memory error brings about). It opens nothing, counts for no rule of its own, and is
  counted in the root's condition and named in its evidence. Where it came first, its condition closes as
  absorbed when the root comes, and what a frequency rule had counted of it near the root is taken back.
  The worse of two is never hidden: a root is at least as strict as its companion. Of several roots the
  open goes before the closed, then the strictest, then the newest. An absorbed fault is nobody's root,
  so that windows do not chain. Of a root that has closed nothing is left to count in: a notice is told.
  While its source shows the companion, it stays absorbed for as long as the root is open; still shown
  after that, it is a fault of its own.
- ``level``: beside ``with``, in whichever order they came, ``code`` has the rule's level in place of its
  row's, be that stricter or not, until its condition closes; of several such rules the strictest counts.
  A duration rule's level still goes on top. An absorbed fault makes a pair as any other does.
- ``cancel``: ``code`` closes the conditions of ``with`` that occurred before it. It has a direction, so
  ``with`` that comes later is a new fault. ``within = "0s"``: however long ago they occurred.

The order at one occurrence: absorbed or opened, levels, companions that came first, cancelled ones, and
only then frequency rules count it.
"""

from collections.abc import Mapping

from nodeagent.core import clearing, duration, frequency, limits, pairing
from nodeagent.core.catalog import RelationRule
from nodeagent.core.cells import changed
from nodeagent.core.lookup import Facts, Relations
from nodeagent.core.model import Absorbed, Assertion, Condition, Device, Level, Signal, Trace
from nodeagent.core.notices import notice
from nodeagent.core.state import State
from nodeagent.core.verdict import PRECEDENCE

COMPANIONS = "companions"
"""The key of a root's evidence that names the codes of its companions."""

_MAX_COMPANIONS = 16


def absorb(state: State, device: Device, signal: Signal, facts: Facts, level: Level, at_ns: int) -> bool:
    """Attach an occurrence to its root. False where it has none: it is a fault of its own.

    ``level`` is what the condition has, or would have if it opened.
    """
    condition = state.condition(device.id, facts.key)
    newest_ns = max(at_ns, condition.occurred_ns if condition is not None else at_ns)
    root = _root(state, device, facts, level, newest_ns)
    if root is None:
        return False
    if condition is not None:
        after = changed(condition, occurred_ns=newest_ns, count=condition.count + signal.count)
        if signal.assertion is Assertion.OCCUR:
            after = changed(after, present_ns=at_ns, recovered_ns=None)
        _close_as_absorbed(state, after, root)
    else:
        _attach(state, device, root, facts.code, signal)
        if signal.assertion is Assertion.OCCUR:
            _keep_absorbed(state, device.id, facts.key, signal.source, root, newest_ns)
    passed(state, device, facts, level, newest_ns)
    return True


def occurred(state: State, condition: Condition) -> Condition:
    """An occurrence was put in its condition: all that follows for it and for others. Returns it anew."""
    facts = state.lookup.facts(condition.code)
    if facts.relations is None or condition.injected:
        return condition
    device_id, at_ns = condition.device_id, condition.occurred_ns
    end_absorption(state, device_id, facts.key)
    if facts.relations.levelled:
        _join(state, condition)
    _join_others(state, device_id, facts.key, facts.relations, at_ns)
    for rule in facts.relations.absorbing:
        for companion in pairing.subjects(state, rule, device_id, facts.key, at_ns):
            _absorb_earlier(state, rule, condition.id, companion)
    _cancel(state, device_id, facts, at_ns)
    return state.get(Condition, condition.id) or condition


def passed(state: State, device: Device, facts: Facts, level: Level, at_ns: int) -> bool:
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


def end_absorption(state: State, device_id: str, key: str) -> bool:
    """The source says that the companion is gone, or it is a fault of its own. True if it was absorbed."""
    absorbed = state.get(Absorbed, device_id, key)
    if absorbed is not None:
        state.drop(absorbed)
    return absorbed is not None


def absent(state: State, source: str, device_id: str | None, shown: frozenset[str], begun_ns: int) -> bool:
    """A complete poll does not show these companions: they are absorbed no longer. True if any was."""
    gone = [
        cell
        for cell in state.all(Absorbed)
        if cell.source == source
        and device_id in (None, cell.device_id)
        and cell.code not in shown
        and cell.last_ns < begun_ns
    ]
    for cell in gone:
        state.drop(cell)
    return bool(gone)


# --------------------------------------------------------------------------- companions


def _root(state: State, device: Device, facts: Facts, level: Level, at_ns: int) -> Condition | Trace | None:
    assert facts.relations is not None, "asked of a code that no relation rule names"
    found = [
        fault
        for rule in facts.relations.absorbed
        for fault in pairing.partners(state, rule, device.id, facts.key, at_ns)
        if PRECEDENCE[fault.level] >= PRECEDENCE[level] and (isinstance(fault, Condition) or fault.root)
    ]
    return max(found, key=_preferred, default=None)


def _preferred(fault: Condition | Trace) -> tuple[bool, int, int, str, str]:
    open_first = isinstance(fault, Condition)
    return open_first, PRECEDENCE[fault.level], fault.occurred_ns, fault.device_id, fault.code


def _attach(state: State, device: Device, root: Condition | Trace, code: str, signal: Signal) -> None:
    if isinstance(root, Condition):
        _count_in(state, root.id, code, signal.count)
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


def _count_in(state: State, root_id: str, code: str, count: int) -> None:
    root = state.get(Condition, root_id)
    assert root is not None, f"no root {root_id}"
    state.put(changed(root, count=root.count + count, evidence=_naming(root.evidence, code)))


def _naming(evidence: Mapping[str, str], code: str) -> Mapping[str, str]:
    named = evidence.get(COMPANIONS, "").split(", ") if COMPANIONS in evidence else []
    if code in named or len(named) >= _MAX_COMPANIONS:
        return evidence
    return {**evidence, COMPANIONS: ", ".join((*named, code))}


def _absorb_earlier(state: State, rule: RelationRule, root_id: str, companion: Condition) -> None:
    """The root has come: a companion that came first is no fault of its own."""
    root = state.get(Condition, root_id)
    assert root is not None, f"no root {root_id}"
    if PRECEDENCE[root.level] >= PRECEDENCE[companion.level]:
        frequency.uncount(state, companion, root.occurred_ns, rule.within_ns)
        _close_as_absorbed(state, companion, root)


def _close_as_absorbed(state: State, companion: Condition, root: Condition | Trace) -> None:
    device = state.device(root.device_id)
    clearing.close(state, companion, f"absorbed: it goes with {root.code} on {device.name}")
    pairing.remember(state, companion, root=False)
    if isinstance(root, Condition):
        _count_in(state, root.id, companion.code, companion.count)
    if companion.present_ns is not None and companion.recovered_ns is None:
        key = state.lookup.facts(companion.code).key
        _keep_absorbed(state, companion.device_id, key, companion.source, root, companion.occurred_ns)


def _keep_absorbed(
    state: State, device_id: str, key: str, source: str, root: Condition | Trace, at_ns: int
) -> None:
    if isinstance(root, Condition):
        cell = Absorbed(device_id=device_id, code=key, source=source, root_id=root.id, last_ns=at_ns)
        limits.remember(state, cell)


# --------------------------------------------------------------------------- levels and ends


def _join_others(state: State, device_id: str, key: str, relations: Relations, at_ns: int) -> None:
    for rule in relations.levelling:
        for subject in pairing.subjects(state, rule, device_id, key, at_ns):
            _join(state, subject)


def _join(state: State, condition: Condition) -> None:
    after = pairing.joined(state, condition)
    if after is not condition:
        duration.relevel(state, condition, after, f"beside a related fault, by {after.relations[-1]}")


def _cancel(state: State, device_id: str, facts: Facts, at_ns: int) -> bool:
    assert facts.relations is not None, "asked of a code that no relation rule names"
    cancelled = False
    for rule in facts.relations.cancelling:
        for fault in pairing.ended(state, rule, device_id, facts.key, at_ns):
            clearing.close(state, fault, f"cancelled by {facts.code}")
            cancelled = True
    return cancelled
