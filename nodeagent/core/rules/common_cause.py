"""The common-cause rule: a fault that so many devices have at once has one cause, which is the node's.

It looks at the faults that are open, after every change. While as many devices as the rule asks for have one
of its codes, the node has the fault that it raises, and the evidence names the devices. A fault that goes
with the node's by a relation rule is open no more, and counts on while its source shows it; so with a
``relation`` that absorbs, the one fault represents all. Devices that join later renew the node's fault,
however late. It recovers once fewer devices have theirs: what is left is a fault of its own again.

A chip counts once, whatever part of it a fault is on. What is injected counts for nothing, nor does what
only a kernel line reports of a chip whose driver reports its faults. New tables raise nothing: something must
occur under them first. It changes no level, and absorbs nothing by itself.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from nodeagent.core.catalog.catalog import CommonCauseRule
from nodeagent.core.model import NODE, Absorbed, Assertion, Belief, Condition, RuleCell, Signal
from nodeagent.core.rules.kind import Raise, Raising, RuleKind
from nodeagent.core.state.state import EngineState


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonCause(RuleCell):
    """The rule is met, by the devices of these ids. It is a cell of the node."""

    devices: tuple[str, ...]

    def due_ns(self, _rule: Any, /) -> None:
        """Nothing of it ends by time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """The newest occurrence on one device, and the source that reported it."""

    at_ns: int
    source: str


def review(state: EngineState, raise_: Raise) -> None:
    """What has changed may have met a rule, or ended that it is met."""
    for rule in state.lookup.catalog.common_cause:
        _review(state, rule, raise_)


def _review(state: EngineState, rule: CommonCauseRule, raise_: Raise) -> None:
    cell = state.get(CommonCause, state.node_id, rule.id)
    root = state.condition(state.node_id, state.lookup.facts(rule.code).key)
    if cell is None and root is None and len(state.indexes.shared.get(rule.id, ())) < rule.devices:
        return
    shown = _by_device(state, rule, root)
    if cell is not None and len(shown) < rule.devices:
        state.drop(cell)
        _signal(state, rule, cell, Assertion.RECOVER, raise_)
    elif cell is not None or _is_at_once(rule, shown.values(), state.era.catalog_ns):
        _met(state, rule, cell, root, shown, raise_)


def _met(
    state: EngineState,
    rule: CommonCauseRule,
    before: CommonCause | None,
    root: Condition | None,
    shown: Mapping[str, _Shown],
    raise_: Raise,
) -> None:
    """The rule is met: its fault is open, and names these devices. One that joins is an occurrence of it."""
    newest = max(shown.values(), key=lambda each: (each.at_ns, each.source))
    cell = CommonCause(
        device_id=state.node_id, rule=rule.id, source=newest.source, devices=tuple(sorted(shown))
    )
    if before is None or before.devices != cell.devices:
        state.put(cell)
    if before is None or root is None or not set(cell.devices) <= set(before.devices):
        _signal(state, rule, cell, Assertion.OCCUR, raise_)
    elif (evidence := {**root.backing.evidence, **_evidence(state, rule, cell)}) != root.backing.evidence:
        state.put(replace(root, backing=replace(root.backing, evidence=evidence)))


def _by_device(state: EngineState, rule: CommonCauseRule, root: Condition | None) -> Mapping[str, _Shown]:
    """By the id of the chip or other device: what is open on it, and what goes with ``root``."""
    found: dict[str, _Shown] = {}
    for fault in _faults(state, rule, root):
        at_ns = fault.occurred_ns if isinstance(fault, Condition) else fault.last_ns
        device = state.chip_of(state.device(fault.device_id))
        if device.name != NODE and (device.id not in found or at_ns > found[device.id].at_ns):
            found[device.id] = _Shown(at_ns=at_ns, source=fault.source)
    return found


def _faults(
    state: EngineState, rule: CommonCauseRule, root: Condition | None
) -> Iterable[Condition | Absorbed]:
    for key in state.indexes.shared.get(rule.id, ()):
        condition: Condition = state.cells[Condition][key]
        if condition.backing.belief is Belief.OWN:
            yield condition
    if root is None:
        return
    for absorbed in state.cells[Absorbed].values():
        if absorbed.root_id == root.id and rule in state.lookup.facts(absorbed.code).common_causes:
            yield absorbed


def _is_at_once(rule: CommonCauseRule, shown: Iterable[_Shown], tables_ns: int) -> bool:
    """Whether so many of these lie near enough to each other, the newest of them after the tables."""
    times_ns = sorted(each.at_ns for each in shown)
    return any(
        newest_ns > tables_ns and (not rule.within_ns or newest_ns - oldest_ns <= rule.within_ns)
        for oldest_ns, newest_ns in zip(times_ns, times_ns[rule.devices - 1 :], strict=False)
    )


def _evidence(state: EngineState, rule: CommonCauseRule, cell: CommonCause) -> Mapping[str, str]:
    names = sorted((state.device(each).name for each in cell.devices), key=lambda name: (len(name), name))
    return {"rule": rule.id, "codes": rule.watches, "devices": ", ".join(names)}


def _signal(
    state: EngineState, rule: CommonCauseRule, cell: CommonCause, assertion: Assertion, raise_: Raise
) -> None:
    evidence = _evidence(state, rule, cell) if assertion is Assertion.OCCUR else {}
    signal = Signal(source=cell.source, device=NODE, code=rule.code, assertion=assertion, evidence=evidence)
    raise_(state, signal, rule.id)


KIND = RuleKind(name="common cause", raising=Raising(tag="CommonCause", cell=CommonCause, review=review))
