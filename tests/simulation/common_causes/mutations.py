"""Small, named defects of the common-cause rule: each must be caught."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from nodeagent.core.catalog.catalog import CommonCauseRule
from nodeagent.core.model import Absorbed, Condition
from nodeagent.core.rules import common_cause
from nodeagent.core.rules.kind import Raise
from nodeagent.core.state.state import EngineState
from tests.simulation.mutations.defects import carrying_no
from tests.simulation.mutations.mutation import Mutation, Replacement

_is_at_once, _review, _stand, _faults = (
    common_cause._is_at_once,
    common_cause._review,
    common_cause._met,
    common_cause._faults,
)


def _beginning(change: Callable[[CommonCauseRule], CommonCauseRule]) -> Replacement:
    def is_at_once(rule: CommonCauseRule, *rest: Any) -> bool:
        return _is_at_once(change(rule), *rest)

    return common_cause, "_is_at_once", is_at_once


def _whatever_the_tables(rule: CommonCauseRule, shown: Any, _tables_ns: int) -> bool:
    return _is_at_once(rule, shown, -1)


def _until_the_last(state: EngineState, rule: CommonCauseRule, raise_: Raise) -> None:
    stands = state.get(common_cause.CommonCause, state.node_id, rule.id) is not None
    _review(state, replace(rule, devices=1) if stands else rule, raise_)


def _unnamed(state: EngineState, rule: CommonCauseRule, before: Any, *rest: Any) -> None:
    if before is None:
        _stand(state, rule, before, *rest)


def _open_ones(state: EngineState, rule: CommonCauseRule, _root: Any) -> Iterable[Condition | Absorbed]:
    return _faults(state, rule, None)


MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "one device fewer is enough", (_beginning(lambda rule: replace(rule, devices=rule.devices - 1)),)
    ),
    Mutation(
        "one device more is needed", (_beginning(lambda rule: replace(rule, devices=rule.devices + 1)),)
    ),
    Mutation(
        "what lies a nanosecond further apart is at once",
        (_beginning(lambda rule: replace(rule, within_ns=rule.within_ns + bool(rule.within_ns))),),
    ),
    Mutation(
        "what lies as far apart as it may is not at once",
        (_beginning(lambda rule: replace(rule, within_ns=max(0, rule.within_ns - 1))),),
    ),
    Mutation("whatever is there is at once", (_beginning(lambda rule: replace(rule, within_ns=0)),)),
    Mutation("new tables find a common cause", ((common_cause, "_is_at_once", _whatever_the_tables),)),
    Mutation(
        "a common cause stands until the last device is well", ((common_cause, "_review", _until_the_last),)
    ),
    Mutation("a device that joins is not named", ((common_cause, "_met", _unnamed),)),
    Mutation("what goes with the node's fault is not counted", ((common_cause, "_faults", _open_ones),)),
    Mutation("a compaction loses what stands", (carrying_no(common_cause.CommonCause),)),
)
