"""Which faults stand near which: what a relation rule pairs. It closes nothing and tells nothing.

Two faults are near where their newest occurrences lie at most ``within`` apart, on one device, on two
that a job shares, or anywhere on the node. Of a fault whose condition has closed a ``Trace`` keeps the
newest occurrence. Injected faults pair with nothing.
"""

from collections.abc import Iterator
from dataclasses import replace

from nodeagent.core import correlation, limits
from nodeagent.core.catalog import RelationRule
from nodeagent.core.lookup import Lookup
from nodeagent.core.model import Absorbed, Condition, Level, Trace
from nodeagent.core.state import State
from nodeagent.core.verdict import stricter


def near(rule: RelationRule, one_ns: int, other_ns: int) -> bool:
    return abs(one_ns - other_ns) <= rule.within_ns


def partners(state: State, rule: RelationRule, device_id: str, key: str) -> Iterator[Condition | Trace]:
    """The faults of ``with`` in the rule's reach of the device, near or not; none of the code itself."""
    for condition in _conditions(state, rule, device_id):
        if _stands_in(state, rule, condition, key):
            yield condition
    for trace in _traces(state, rule, device_id):
        if _stands_in(state, rule, trace, key):
            yield trace


def open_anywhere(state: State, rule: RelationRule) -> bool:
    """False where no condition of ``code`` is open on any device: nearly always, and known at once."""
    code_key = state.lookup.relation_codes[rule.id]
    return not code_key or code_key in state.open_of


def subjects(state: State, rule: RelationRule, device_id: str, key: str, at_ns: int) -> list[Condition]:
    """The open conditions of ``code`` in the rule's reach, near an occurrence of ``key`` of ``with``."""
    found: list[Condition] = []
    if not open_anywhere(state, rule):
        return found
    for other in _candidates(state, rule, device_id):
        if not near(rule, other.occurred_ns, at_ns):
            continue
        facts = state.lookup.facts(other.code)
        if facts.relations is not None and rule.id in facts.relations.ids_as_code and facts.key != key:
            found.append(other)
    return found


def joined(state: State, condition: Condition) -> Condition:
    """With the rules noted that find a partner near it and so give it their level."""
    facts = state.lookup.facts(condition.code)
    if facts.relations is None or condition.injected:
        return condition
    found = [
        rule.id
        for rule in facts.relations.as_code
        if rule.then == "level"
        and rule.id not in condition.relations
        and any(
            near(rule, partner.occurred_ns, condition.occurred_ns)
            for partner in partners(state, rule, condition.device_id, facts.key)
        )
    ]
    return replace(condition, relations=(*condition.relations, *found)) if found else condition


def level(lookup: Lookup, condition: Condition) -> Level | None:
    """The strictest level of the rules that found their pair and that the tables still have, else None."""
    relations = lookup.facts(condition.code).relations
    found: Level | None = None
    if condition.relations and relations is not None:
        for rule in relations.as_code:
            if rule.level is not None and rule.id in condition.relations:
                found = rule.level if found is None else stricter(found, rule.level)
    return found


def remember(state: State, condition: Condition, *, root: bool = True) -> None:
    """Keep the newest occurrence of a condition that is no longer open, where a rule may pair it."""
    facts = state.lookup.facts(condition.code)
    if condition.injected or facts.relations is None or not facts.relations.as_with:
        return
    trace = Trace(
        device_id=condition.device_id,
        code=facts.key,
        level=condition.level,
        occurred_ns=condition.occurred_ns,
        root=root,
    )
    limits.remember(state, trace)


def standing(state: State, device_id: str, key: str) -> Absorbed | None:
    """The companion that the source shows and whose root is open: that explains it. Else None."""
    absorbed = state.get(Absorbed, device_id, key)
    if absorbed is None or state.get(Condition, absorbed.root_id) is None:
        return None
    return absorbed


def _candidates(state: State, rule: RelationRule, device_id: str) -> Iterator[Condition]:
    """Where the rule is on one code and no family, its conditions are known without a search."""
    code_key = state.lookup.relation_codes[rule.id]
    if not code_key:
        return _conditions(state, rule, device_id)
    return (
        condition
        for condition in state.conditions_of(code_key)
        if not condition.injected and _in_reach(state, rule, device_id, condition.device_id)
    )


def _conditions(state: State, rule: RelationRule, device_id: str) -> Iterator[Condition]:
    if rule.same == "device":
        found = state.on(Condition, device_id)
    else:
        found = [one for one in state.all(Condition) if _in_reach(state, rule, device_id, one.device_id)]
    return (condition for condition in found if not condition.injected)


def _traces(state: State, rule: RelationRule, device_id: str) -> list[Trace]:
    if rule.same == "device":
        return state.on(Trace, device_id)
    return [trace for trace in state.all(Trace) if _in_reach(state, rule, device_id, trace.device_id)]


def _in_reach(state: State, rule: RelationRule, one: str, other: str) -> bool:
    if rule.same == "device":
        return one == other
    return rule.same == "node" or one == other or correlation.same_job(state, one, other)


def _stands_in(state: State, rule: RelationRule, fault: Condition | Trace, key: str) -> bool:
    facts = state.lookup.facts(fault.code)
    return facts.key != key and facts.relations is not None and rule.id in facts.relations.ids_as_with
