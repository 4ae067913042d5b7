"""A deadline of a condition has passed: it closes, takes another level, or enters its next phase."""

from dataclasses import replace

from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.faults import closing, kernel_lines
from nodeagent.core.model import Condition
from nodeagent.core.rules import duration
from nodeagent.core.state import deadlines
from nodeagent.core.state.state import State


def due(state: State, condition: Condition) -> None:
    """A deadline of the condition has passed; where several fall together it rather closes than escalates."""
    at_ns = state.moment_ns
    clearing_ns = deadlines.clearing_ns(state.lookup, condition)
    timeout_ns = deadlines.timeout_ns(state.lookup, condition)
    disregard_ns = deadlines.disregard_ns(state.lookup, condition)
    if clearing_ns is not None and clearing_ns <= at_ns:
        if condition.recovered_ns is not None and deadlines.is_held_by_once(state.lookup, condition, at_ns):
            duration.ended(state, condition)
            return
        closing.close(state, condition, _why_time_closed(state, condition))
    elif timeout_ns is not None and timeout_ns <= at_ns:
        duration.timed_out(state, condition)
    elif disregard_ns is not None and disregard_ns <= at_ns:
        kernel_lines.disregard(state, condition)
    else:
        state.put(replace(condition, phase=condition.phase + 1))


def _why_time_closed(state: State, condition: Condition) -> str:
    if condition.injected:
        return "injected faults end by themselves"
    if condition.report is not None and condition.present_ns is not None:
        sender = condition.report.sender
        expiry_s = state.lookup.settings.public.expiry_ns(sender) // SECOND_NS
        return f"expired: {sender} has not repeated it for {expiry_s} s"
    if condition.recovered_ns is not None:
        return "recovered for longer than its duration rule asks"
    return "not seen again"
