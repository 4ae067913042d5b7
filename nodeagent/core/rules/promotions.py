"""Promotions that stand: when they are quiet, and how they end. What promotes is ``frequency``'s."""

from dataclasses import replace

from nodeagent.core.judge.events import emit
from nodeagent.core.model import Condition, EventKind, Promotion
from nodeagent.core.rules import windows
from nodeagent.core.state import limits
from nodeagent.core.state.state import State


def present(state: State, condition: Condition) -> None:
    """The fault is there, counted or not: its promotions are not quiet. With a duration rule it must last."""
    if state.lookup.facts(condition.code).duration is not None and not condition.judged:
        return
    for promotion in of(state, condition):
        if promotion.quiet_since_ns is not None:
            state.put(replace(promotion, quiet_since_ns=None))


def recovered(state: State, condition: Condition, at_ns: int) -> None:
    """The fault is no longer present: the quiet time of its promotions begins, unless another system reports
    the same.
    """
    for promotion in of(state, condition):
        if promotion.quiet_since_ns is None and not _is_shown_beside(state, condition):
            state.put(replace(promotion, quiet_since_ns=at_ns))


def requeue(state: State, promotion: Promotion) -> None:
    """It has not taken effect: what fired it is counted again."""
    state.drop(promotion)
    key = state.lookup.facts(promotion.code).key
    window = windows.window_of(state, promotion.device_id, key, promotion.rule)
    times = tuple(sorted((*promotion.occurrences_ns, *window.occurrences_ns)))
    limits.remember(state, replace(window, occurrences_ns=times))


def release(state: State, promotion: Promotion, why: str) -> None:
    """End it. One that had not taken effect was never published, and ends without an event."""
    state.drop(promotion)
    if promotion.effective:
        emit(state, EventKind.RELEASED, state.device(promotion.device_id), about=promotion, why=why)


def of(state: State, condition: Condition) -> list[Promotion]:
    if condition.injected:
        return []
    return state.promotions(condition.device_id, state.lookup.facts(condition.code).key)


def _is_shown_beside(state: State, condition: Condition) -> bool:
    key = state.lookup.facts(condition.code).key
    return any(
        other.id != condition.id
        and other.present_ns is not None
        and not other.injected
        and state.lookup.facts(other.code).key == key
        for other in state.on(Condition, condition.device_id)
    )
