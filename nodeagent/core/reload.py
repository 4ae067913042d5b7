"""New tables: open conditions take their rows and levels, and what rules have raised ends with its rule.

A reload raises and promotes nothing. A rule that is gone takes its fault with it, because nothing would
report its end. A rule whose bounds changed forgets what it was waiting for and begins again with the next
input.
"""

from dataclasses import replace

from nodeagent.core.catalog.catalog import FrequencyRule
from nodeagent.core.catalog.lookup import Facts, Lookup, classify
from nodeagent.core.faults import conditions, ending, reported
from nodeagent.core.judge.events import emit
from nodeagent.core.model import AGENT, CatalogChanged, Condition, EventKind, Promotion, TablesRejected
from nodeagent.core.rules import duration, frequency, kinds
from nodeagent.core.state import deadlines
from nodeagent.core.state.state import EngineState


def changed(state: EngineState, given: CatalogChanged) -> bool:
    """Judge by the catalog of that digest from here on.

    Raises KeyError where the shell did not add the catalog before the input: its error, not a bad input.
    """
    before = state.era
    if before.digest == given.digest:
        return False
    if given.digest not in state.catalogs:
        raise KeyError(given.digest)
    judged_by = state.lookup
    state.put(replace(before, digest=given.digest, catalog_ns=state.moment_ns))
    if before.digest:
        why = f"catalog {before.digest[:12]} -> {given.digest[:12]}"
        emit(state, EventKind.TABLES_RELOADED, state.device(state.node_id), source=AGENT, why=why)
    same_unknown_level = judged_by.settings.unknown_level is state.lookup.settings.unknown_level
    for condition in state.all(Condition):
        if (other := state.same_fault(condition)) is not None:
            ending.move_companions(state, condition, other)
            why = "by the new tables it is the same fault as another that is open"
            ending.close(state, condition, why)
        else:
            _take_row(state, condition, same_unknown_level)
    for promotion in state.all(Promotion):
        _review(state, promotion)
    if judged_by.settings.public != state.lookup.settings.public:
        reported.began_again(state)
    _review_rules(state, judged_by)
    deadlines.rearm(state, not_before_ns=state.moment_ns)
    return True


def rejected(state: EngineState, given: TablesRejected) -> bool:
    node = state.device(state.node_id)
    emit(state, EventKind.TABLES_REJECTED, node, source=AGENT, why=given.reason)
    return True


def _take_row(state: EngineState, condition: Condition, same_unknown_level: bool) -> None:
    """The open condition takes the row's level and name. A code that lost its row keeps what it had."""
    facts = state.lookup.facts(condition.code)
    after = condition
    if facts.row is not None or (condition.grade.unknown and not same_unknown_level):
        fault = classify(state.lookup, condition.source, facts, condition.grade.severity)
        grade = replace(
            condition.grade,
            base_level=fault.level,
            affects=fault.affects,
            user_induced=fault.user_induced,
            unknown=fault.unknown,
        )
        after = replace(condition, code=facts.code, name=fault.name, grade=grade)
    after = conditions.relevel(state, condition, _in_time(state, after), "the tables changed")
    if after.presence.is_shown:
        kinds.present(state, after)


def _in_time(state: EngineState, condition: Condition) -> Condition:
    """Time-outs past by the new tables: their levels follow, and none counts as reached just now."""
    rule = state.lookup.facts(condition.code).duration
    if rule is None:
        condition = duration.without_rule(condition)
    if state.awaits(condition.source, condition.device_id):
        return condition
    if not condition.origin.injected and _is_past(state, deadlines.timeout_ns(rule, condition.presence)):
        condition = duration.timed_out(condition)
    return deadlines.in_its_phase(state.lookup_on(condition.device_id), condition, state.moment_ns)


def _is_past(state: EngineState, at_ns: int | None) -> bool:
    return at_ns is not None and at_ns <= state.moment_ns


def _review(state: EngineState, promotion: Promotion) -> None:
    rule = state.lookup.frequency_by_id(promotion.rule)
    if rule is None or not _names(rule, state.lookup.facts(promotion.code), state):
        frequency.release(state, promotion, "its rule was removed from the tables")
    elif not promotion.effective and _is_past(state, deadlines.of_promotion(state.lookup, promotion)):
        # Its time to take effect would have come by the new tables: they promote with the next occurrence.
        frequency.requeue(state, promotion)
    elif rule.level != promotion.level and not promotion.capped:
        after = replace(promotion, level=rule.level, level_since_ns=state.moment_ns, phase=0)
        state.put(after)
        if after.effective:
            why = f"its rule changed: {promotion.level} -> {rule.level}"
            emit(state, EventKind.LEVEL_CHANGED, state.device(after.device_id), about=after, why=why)


def _names(rule: FrequencyRule, facts: Facts, state: EngineState) -> bool:
    return any(code == "*" or state.lookup.facts(code).key == facts.key for code in rule.codes)


def _review_rules(state: EngineState, before: Lookup) -> None:
    """After a change of the catalog; ``before`` is what judged until now."""
    for of in state.rule_cells:
        for cell in state.all(of):
            old, new = before.raising_by_id(cell.rule), state.lookup.raising_by_id(cell.rule)
            if not _may_end(before, state.lookup, cell.rule) or not cell.survives_reload(old, new):
                state.drop(cell)
    for condition in state.all(Condition):
        if condition.origin.rule and not _may_end(before, state.lookup, condition.origin.rule):
            conditions.end(state, condition, f"its rule {condition.origin.rule} was removed from the tables")


def _may_end(before: Lookup, after: Lookup, rule_id: str) -> bool:
    """Whether the rule may still end what it raised."""
    old, new = before.raising_by_id(rule_id), after.raising_by_id(rule_id)
    return old is not None and new is not None and old.raises_as(new)
