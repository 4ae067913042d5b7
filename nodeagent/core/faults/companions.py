"""Companions: faults that go with another, their root, by a relation rule that absorbs.

While its source shows a companion, it stays with its root for as long as that is open (``Absorbed``). When
the root ends and the companion does not, it goes with another open root that it occurred near, or else is a
fault of its own from that moment on: there is no time at which neither of them is open. That it continues is
no occurrence, and counts for no rule. A root that has closed explains nothing that is there now.

What else an occurrence does is ``relation``.
"""

from collections.abc import Mapping
from dataclasses import replace

from nodeagent.core.catalog import unknown_codes
from nodeagent.core.catalog.classify import classify
from nodeagent.core.catalog.lookup import Facts
from nodeagent.core.faults import opening
from nodeagent.core.model import Absorbed, Assertion, Condition, Level, Signal, Trace
from nodeagent.core.rules import relation_pairs
from nodeagent.core.state import eviction, limits
from nodeagent.core.state.cell_keys import changed
from nodeagent.core.state.state import State
from nodeagent.core.verdicts.judge import PRECEDENCE

EVIDENCE = "companions"
"""The key of a root's evidence that names the codes of its companions."""

_MAX_NAMED = 16


def root_of(
    state: State,
    device_id: str,
    facts: Facts,
    level: Level,
    at_ns: int,
    *,
    is_there: bool,
    but_id: str = "",
) -> Condition | Trace | None:
    """What an occurrence goes with, if anything: not with ``but_id``, and where the fault ``is_there`` only
    with what is open. ``level`` is what its condition has, or would have if it opened.
    """
    assert facts.relations is not None, "asked of a code that no relation rule names"
    found = [
        fault
        for rule in facts.relations.absorbed
        for fault in relation_pairs.partners(state, rule, device_id, facts.key, at_ns)
        if PRECEDENCE[fault.level] >= PRECEDENCE[level] and _may_be_root(fault, is_there, but_id)
    ]
    return max(found, key=_preferred, default=None)


def keep(state: State, device_id: str, key: str, source: str, root: Condition, at_ns: int, rule: str) -> None:
    """Its source, or a rule, shows it: it stays with its root."""
    cell = Absorbed(device_id=device_id, code=key, source=source, root_id=root.id, last_ns=at_ns, rule=rule)
    limits.remember(state, cell)


def count_in(state: State, root_id: str, code: str, count: int) -> None:
    """Into its root's condition, and into the evidence there."""
    root = state.get(Condition, root_id)
    assert root is not None, f"no root {root_id}"
    state.put(changed(root, count=root.count + count, evidence=_naming(root.evidence, code)))


def end(state: State, device_id: str, key: str) -> bool:
    """The source says that the companion is gone, or it is a fault of its own. True if it was one."""
    absorbed = state.get(Absorbed, device_id, key)
    if absorbed is not None:
        state.drop(absorbed)
    return absorbed is not None


def absent(state: State, source: str, device_id: str | None, shown: frozenset[str], begun_ns: int) -> bool:
    """A complete poll does not show these companions: they are companions no longer. True if any was."""
    gone = [
        cell
        for cell in state.all(Absorbed)
        if cell.source == source
        and device_id in (None, cell.device_id)
        and cell.code not in shown
        and cell.last_ns < begun_ns
        and not cell.rule
    ]
    for cell in gone:
        state.drop(cell)
    return bool(gone)


def forget(state: State, device_id: str) -> None:
    """The device is another part from now on, which has none."""
    for cell in state.all(Absorbed):
        if cell.device_id == device_id:
            state.drop(cell)


def follow(state: State, root: Condition, heir: Condition) -> None:
    """Another condition stands for the root's fault: its companions go with that."""
    for cell in _of(state, root):
        state.put(replace(cell, root_id=heir.id))


def outlive(state: State, root: Condition) -> None:
    """Before the root closes: what of its companions is still there."""
    for cell in _of(state, root):
        state.drop(cell)
        if state.condition(cell.device_id, cell.code) is None:
            _outlive(state, cell, root)


def _outlive(state: State, cell: Absorbed, root: Condition) -> None:
    device, facts = state.device(cell.device_id), state.lookup.facts(cell.code)
    signal = Signal(source=cell.source, device=device.name, code=facts.code, assertion=Assertion.OCCUR)
    fault = classify(state.lookup, cell.source, facts, unknown_codes.of_signal(state, signal, facts))
    other = None
    if facts.relations is not None:
        other = root_of(state, device.id, facts, fault.level, cell.last_ns, is_there=True, but_id=root.id)
    if isinstance(other, Condition):
        count_in(state, other.id, facts.code, 0)
        keep(state, device.id, facts.key, cell.source, other, cell.last_ns, cell.rule)
    elif eviction.for_condition(state, device, fault.level, injected=False, leaving_id=root.id):
        moment_ns = state.moment_ns
        condition = opening.condition_of(
            state, device, signal, facts, fault, at_ns=moment_ns, occurred_ns=cell.last_ns, rule=cell.rule
        )
        opening.begin(
            state, device, condition, f"still there, after {root.code}, which it went with, is over"
        )
    else:
        state.overflow = f"{facts.code} on {device.name} is one too many"


def _of(state: State, root: Condition) -> list[Absorbed]:
    return [cell for cell in state.cells[Absorbed].values() if cell.root_id == root.id]


def _may_be_root(fault: Condition | Trace, is_there: bool, but_id: str) -> bool:
    if isinstance(fault, Condition):
        return fault.id != but_id
    return fault.root and not is_there


def _preferred(fault: Condition | Trace) -> tuple[bool, int, int, str, str]:
    open_first = isinstance(fault, Condition)
    return open_first, PRECEDENCE[fault.level], fault.occurred_ns, fault.device_id, fault.code


def _naming(evidence: Mapping[str, str], code: str) -> Mapping[str, str]:
    named = evidence.get(EVIDENCE, "").split(", ") if EVIDENCE in evidence else []
    if code in named or len(named) >= _MAX_NAMED:
        return evidence
    return {**evidence, EVIDENCE: ", ".join((*named, code))}
