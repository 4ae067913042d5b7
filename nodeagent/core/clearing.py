"""How conditions end: recovery, quiet, reboot, the end of the job, and the passing of their deadlines."""

from dataclasses import replace

from nodeagent.core import deadlines, duration, frequency
from nodeagent.core.model import Condition, EventKind, Holders
from nodeagent.core.state import State
from nodeagent.core.telling import tell


def close(state: State, condition: Condition, why: str, kind: EventKind = EventKind.CLEARED) -> None:
    state.drop(condition)
    tell(state, kind, state.device(condition.device_id), about=condition, why=why)
    frequency.recovered(state, condition.device_id, condition.code, state.moment_ns)


def recover(state: State, condition: Condition) -> bool:
    """The driver says the fault is gone. True if that changed anything."""
    if condition.recovered_ns is not None:
        return False
    at_ns = state.moment_ns
    rule = state.lookup.duration_rule(condition.code)
    closes = deadlines.clear_on(state.lookup, condition.code).recover or condition.injected
    if closes and not (condition.timed_out and rule is not None):
        close(state, condition, "recovered")
        return True
    if closes:
        state.put(replace(condition, recovered_ns=at_ns, last_ns=at_ns))
    elif condition.present_ns is None:
        return False
    else:
        state.put(replace(condition, present_ns=None, judged=False, last_ns=at_ns))
    frequency.recovered(state, condition.device_id, condition.code, at_ns)
    return True


def due(state: State, condition: Condition) -> None:
    """A deadline of the condition has passed; where several fall together it rather closes than escalates."""
    at_ns = state.moment_ns
    clearing_ns = deadlines.clearing_ns(state.lookup, condition)
    timeout_ns = deadlines.timeout_ns(state.lookup, condition)
    if clearing_ns is not None and clearing_ns <= at_ns:
        close(state, condition, _why_time_closed(condition))
    elif timeout_ns is not None and timeout_ns <= at_ns:
        duration.timed_out(state, condition)
    else:
        state.put(replace(condition, phase=condition.phase + 1))


def _why_time_closed(condition: Condition) -> str:
    if condition.injected:
        return "injected faults end by themselves"
    if condition.recovered_ns is not None:
        return "recovered for longer than its duration rule asks"
    return "not seen again"


def close_after_reboot(state: State, source: str, still_shown: frozenset[tuple[str, str]]) -> bool:
    """After the boot's first complete read: what a reboot clears and was not shown again is over.

    ``still_shown`` holds pairs (device id, code).
    """
    changed = False
    for condition in list(state.all(Condition)):
        if condition.source != source or condition.boot_id == state.era.boot_id:
            continue
        if (condition.device_id, condition.code) in still_shown or condition.injected:
            continue
        if deadlines.clear_on(state.lookup, condition.code).reboot:
            close(state, condition, "not shown again since the reboot")
            changed = True
    return changed


def close_after_job(state: State, device_id: str, holders: Holders) -> None:
    """Where a job's end clears: none of the processes that held the device remains."""
    remaining = {(holder.pid, holder.start_time) for holder in holders.holders}
    for condition in state.conditions_on(device_id):
        held_by = condition.held_by
        if not held_by or not deadlines.clear_on(state.lookup, condition.code).job_end:
            continue
        if remaining.isdisjoint((holder.pid, holder.start_time) for holder in held_by):
            close(state, condition, "no process that held the device remains")
