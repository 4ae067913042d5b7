"""How conditions and holds end: recovery, reboot, the end of the job."""

from dataclasses import replace

from nodeagent.core.faults import companions, condition_end
from nodeagent.core.model import Condition, Device, EventKind, Hold, Holder, Ordinal
from nodeagent.core.rules import promotions
from nodeagent.core.state import deadlines
from nodeagent.core.state.state import State
from nodeagent.core.verdicts.emit import emit


def close(state: State, condition: Condition, why: str, *, goes_on: bool = False) -> None:
    """What went with it and is still there is a fault of its own before this one has ended. ``goes_on``: it
    is over as a fault of its own alone.
    """
    if condition_end.has_ended(state, condition):
        return
    companions.outlive(state, condition)
    condition_end.end(state, condition, why, goes_on=goes_on)


def lift(state: State, hold: Hold, why: str) -> None:
    state.drop(hold)
    emit(state, EventKind.RELEASED, state.device(hold.device_id), condition_id=hold.id, why=why)


def recover(state: State, condition: Condition) -> bool:
    """The driver says the fault is gone. True if that changed anything."""
    if condition.recovered_ns is not None or condition_end.has_ended(state, condition):
        return False
    at_ns = state.moment_ns
    facts = state.lookup.facts(condition.code)
    is_present = condition.present_ns is not None
    gone = replace(condition, present_ns=None, judged=False, last_ns=at_ns)
    if not facts.clear_on.recover and not condition.injected:
        if not is_present:
            return False
    else:
        _remember_recovery(state, condition, facts.key)
        if condition.timed_out and facts.duration is not None:
            gone = replace(condition, recovered_ns=at_ns, last_ns=at_ns)
        elif not is_present or not deadlines.is_held_by_once(state.lookup, condition, at_ns):
            close(state, condition, "recovered")
            return True
    state.put(gone)
    promotions.recovered(state, condition, at_ns)
    return True


def _remember_recovery(state: State, condition: Condition, key: str) -> None:
    ordinal = state.get(Ordinal, condition.device_id, key)
    if ordinal is not None and not condition.injected:
        state.put(replace(ordinal, recovered_ns=state.moment_ns))


def close_after_reboot(
    state: State, source: str, device: Device | None, still_shown: frozenset[tuple[str, str]]
) -> bool:
    """After the boot's first complete read: what a reboot clears and was not shown again is over.

    ``device`` None: the read spoke for all of the source's. ``still_shown`` holds pairs (device id,
    key of the code). What a rule has raised it ends itself, unless its row leaves that to others.
    """
    changed = False
    for condition in state.all(Condition) if device is None else state.on_chip(device.id):
        if condition.source != source or condition.boot_id == state.era.boot_id:
            continue
        facts = state.lookup.facts(condition.code)
        if condition.injected or (condition.rule and facts.clear_on.recover):
            continue
        if facts.clear_on.reboot and (condition.device_id, facts.key) not in still_shown:
            close(state, condition, "not shown again since the reboot")
            changed = True
    return changed


def close_after_job(state: State, device_id: str, holders: tuple[Holder, ...]) -> None:
    """Where a job's end clears: none of the processes that held the device remains.

    Of those that nobody knew when it opened, whatever remains is among the first that are listed.
    """
    remaining = {(holder.pid, holder.start_time) for holder in holders}
    for condition in state.on_chip(device_id):
        if not state.lookup.facts(condition.code).clear_on.job_end or condition_end.has_ended(
            state, condition
        ):
            continue
        held_by = holders if condition.held_by is None else condition.held_by
        if remaining.isdisjoint((holder.pid, holder.start_time) for holder in held_by):
            close(state, condition, "no process that held the device remains")
        elif held_by is not condition.held_by:
            state.put(replace(condition, held_by=held_by))
