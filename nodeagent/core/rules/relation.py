"""Which faults are near which: what a relation rule pairs. It closes nothing and emits nothing.

Two faults are near where their newest occurrences lie at most ``within`` apart, on one device, on two
that a job shares, or anywhere on the node. Of a fault whose condition has closed a ``Trace`` keeps the
newest occurrence. Injected faults pair with nothing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from nodeagent.core.catalog.catalog import RelationRule
from nodeagent.core.catalog.levels import stricter
from nodeagent.core.catalog.lookup import Facts, Side, is_undecided, side
from nodeagent.core.model import Absorbed, Condition, Grade, Level, Trace
from nodeagent.core.rules.kind import RuleKind
from nodeagent.core.state import limits, occupancy
from nodeagent.core.state.state import EngineState


def near(rule: RelationRule, one_ns: int, other_ns: int) -> bool:
    return abs(one_ns - other_ns) <= rule.within_ns


def partners(
    state: EngineState, rule: RelationRule, device_id: str, key: str, at_ns: int
) -> list[Condition | Trace]:
    """The faults of ``with`` in the rule's reach, near an occurrence of ``key``, which is of ``code``."""
    return [
        fault
        for fault in _others(state, side("with", rule, device_id), rule, device_id, key)
        if near(rule, fault.occurred_ns, at_ns)
    ]


def subjects(state: EngineState, rule: RelationRule, device_id: str, key: str, at_ns: int) -> list[Condition]:
    """The open conditions of ``code`` in the rule's reach, near an occurrence of ``key`` of ``with``."""
    place = side("code", rule, device_id)
    if place not in state.indexes.paired:
        return []
    return [
        fault
        for fault in _others(state, place, rule, device_id, key)
        if isinstance(fault, Condition) and near(rule, fault.occurred_ns, at_ns)
    ]


def ended_by(state: EngineState, rule: RelationRule, device_id: str, key: str, at_ns: int) -> list[Condition]:
    """The open conditions of ``with`` in the rule's reach that an occurrence of ``key`` ends."""
    return [
        fault
        for fault in _others(state, side("with", rule, device_id), rule, device_id, key)
        if isinstance(fault, Condition)
        and fault.occurred_ns <= at_ns
        and (not rule.within_ns or near(rule, fault.occurred_ns, at_ns))
    ]


def joined(state: EngineState, condition: Condition) -> Condition:
    """With the rules noted that find a partner near it and so give it their level."""
    facts = state.lookup.facts(condition.code)
    if facts.relations is None or condition.origin.injected:
        return condition
    found = [
        rule.id
        for rule in _joining(state, facts, condition.device_id, condition.presence.occurred_ns)
        if rule.id not in condition.grade.relations
    ]
    if not found:
        return condition
    grade = replace(condition.grade, relations=(*condition.grade.relations, *found))
    return replace(condition, grade=grade)


def level_of_new(state: EngineState, facts: Facts, device_id: str, at_ns: int) -> Level | None:
    """The level that relation rules would give to a condition that opened on this occurrence, else None."""
    return _strictest(_joining(state, facts, device_id, at_ns))


def _joining(state: EngineState, facts: Facts, device_id: str, at_ns: int) -> list[RelationRule]:
    levelled = facts.relations.levelled if facts.relations is not None else ()
    return [rule for rule in levelled if partners(state, rule, device_id, facts.key, at_ns)]


def _level_by_relations(facts: Facts, grade: Grade) -> Level | None:
    """The strictest level of the rules that found their pair and that the tables still have, else None."""
    if not grade.relations or facts.relations is None:
        return None
    return _strictest(rule for rule in facts.relations.levelled if rule.id in grade.relations)


def _strictest(rules: Iterable[RelationRule]) -> Level | None:
    found: Level | None = None
    for rule in rules:
        if rule.level is not None:
            found = rule.level if found is None else stricter(found, rule.level)
    return found


def remember_trace(state: EngineState, condition: Condition, *, root: bool = True) -> None:
    """Keep the newest occurrence of a condition that is no longer open, where another's may meet it."""
    facts = state.lookup.facts(condition.code)
    is_partner = facts.relations is not None and bool(facts.relations.as_with)
    if condition.origin.injected or not (is_partner or is_undecided(state.lookup, condition)):
        return
    trace = Trace(
        device_id=condition.device_id,
        code=facts.key,
        level=condition.level,
        occurred_ns=condition.occurred_ns,
        root=root,
    )
    limits.remember(state, trace)


def absorbed(state: EngineState, device_id: str, key: str) -> Absorbed | None:
    """The companion that the source shows and whose root is open: that explains it. Else None."""
    found = state.get(Absorbed, device_id, key)
    if found is None or state.get(Condition, found.root_id) is None:
        return None
    return found


def _others(
    state: EngineState, place: Side, rule: RelationRule, device_id: str, key: str
) -> Iterator[Condition | Trace]:
    """The faults on that side of the rule, in its reach of the device; none of the code itself."""
    conditions, traces, facts = state.cells[Condition], state.cells[Trace], state.lookup.facts
    for fault_key in state.indexes.paired.get(place, ()):
        fault: Condition | Trace = conditions.get(fault_key) or traces[fault_key]
        if facts(fault.code).key != key and (rule.same != "job" or _is_of_the_job(state, device_id, fault)):
            yield fault


def _is_of_the_job(state: EngineState, device_id: str, fault: Condition | Trace) -> bool:
    return fault.device_id == device_id or occupancy.same_job(state, device_id, fault.device_id)


def _level(facts: Facts, grade: Grade, level: Level) -> Level:
    return _level_by_relations(facts, grade) or level


KIND = RuleKind(name="relation", level=_level, ended=remember_trace)
