"""How conditions end: by recovery, a reboot, the end of the job, or time; and the companions that outlive
them.

A companion is a fault that goes with another, its root, by a relation rule that absorbs. While its source
shows a companion, it stays with its root for as long as that is open (``Absorbed``). When the root ends and
the companion does not, it goes with another open root that it occurred near, or else is a fault of its own
from that moment on: there is no time at which neither of them is open. That it continues is no occurrence,
and counts for no rule. A root that has closed explains nothing that is there now.
"""

from collections.abc import Mapping
from dataclasses import replace

from nodeagent.core.catalog.levels import PRECEDENCE
from nodeagent.core.catalog.lookup import Facts, classify
from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.faults import conditions, kernel_lines, opening
from nodeagent.core.faults.conditions import make_room
from nodeagent.core.faults.opening import severity_of
from nodeagent.core.judge.events import emit
from nodeagent.core.model import (
    Absorbed,
    Assertion,
    Condition,
    Device,
    EventKind,
    Hold,
    Holder,
    Level,
    Ordinal,
    Signal,
    Trace,
)
from nodeagent.core.rules import duration, kinds, relation
from nodeagent.core.state import deadlines, limits
from nodeagent.core.state.cells import changed
from nodeagent.core.state.state import EngineState

_COMPANIONS = "companions"
"""The key of a root's evidence that names the codes of its companions."""

_MAX_NAMED = 16


def close(state: EngineState, condition: Condition, why: str, *, goes_on: bool = False) -> None:
    """What went with it and is still there is a fault of its own before this one has ended. ``goes_on``: it
    is over as a fault of its own alone.
    """
    if conditions.has_ended(state, condition):
        return
    _let_companions_outlive(state, condition)
    conditions.end(state, condition, why, goes_on=goes_on)


def lift(state: EngineState, hold: Hold, why: str) -> None:
    state.drop(hold)
    emit(state, EventKind.RELEASED, state.device(hold.device_id), condition_id=hold.id, why=why)


def recover(state: EngineState, condition: Condition) -> bool:
    """The driver reports the fault as gone. True if that changed anything."""
    before, at_ns = condition.presence, state.moment_ns
    if before.recovered_ns is not None or conditions.has_ended(state, condition):
        return False
    facts = state.lookup.facts(condition.code)
    gone = replace(before, present_ns=None, judged=False, last_ns=at_ns)
    if not facts.clear_on.recover and not condition.origin.injected:
        if before.present_ns is None:
            return False
    else:
        _remember_recovery(state, condition, facts.key)
        if condition.grade.timed_out and facts.duration is not None:
            gone = replace(before, recovered_ns=at_ns, last_ns=at_ns)
        elif before.present_ns is None or not deadlines.is_held_by_once(state.lookup, condition, at_ns):
            close(state, condition, "recovered")
            return True
    state.put(replace(condition, presence=gone))
    kinds.recovered(state, condition, at_ns)
    return True


def _remember_recovery(state: EngineState, condition: Condition, key: str) -> None:
    ordinal = state.get(Ordinal, condition.device_id, key)
    if ordinal is not None and not condition.origin.injected:
        state.put(replace(ordinal, recovered_ns=state.moment_ns))


def close_after_reboot(
    state: EngineState, source: str, device: Device | None, still_shown: frozenset[tuple[str, str]]
) -> bool:
    """After the boot's first complete read: what a reboot clears and was not shown again is over.

    ``device`` None: the read covered every device of the source. ``still_shown`` holds pairs (device id,
    key of the code). What a rule has raised it ends itself, unless its row leaves that to others.
    """
    changed = False
    for condition in state.all(Condition) if device is None else state.on_chip(device.id):
        if condition.source != source or condition.presence.boot_id == state.era.boot_id:
            continue
        facts = state.lookup.facts(condition.code)
        if condition.origin.injected or (condition.origin.rule and facts.clear_on.recover):
            continue
        if facts.clear_on.reboot and (condition.device_id, facts.key) not in still_shown:
            close(state, condition, "not shown again since the reboot")
            changed = True
    return changed


def close_after_job(state: EngineState, device_id: str, holders: tuple[Holder, ...]) -> None:
    """Where a job's end clears: none of the processes that used the device remains.

    Where they were not known when it opened, the first that are listed since count as these.
    """
    remaining = {(holder.pid, holder.start_time) for holder in holders}
    for condition in state.on_chip(device_id):
        if not state.lookup.facts(condition.code).clear_on.job_end or conditions.has_ended(state, condition):
            continue
        users = holders if condition.origin.users is None else condition.origin.users
        if remaining.isdisjoint((holder.pid, holder.start_time) for holder in users):
            close(state, condition, "no process that used the device remains")
        elif users is not condition.origin.users:
            state.put(replace(condition, origin=replace(condition.origin, users=users)))


def due(state: EngineState, condition: Condition) -> None:
    """A deadline of the condition has passed; where several fall together it rather closes than escalates."""
    at_ns = state.moment_ns
    clearing_ns = deadlines.clearing_ns(state.lookup, condition)
    timeout_ns = deadlines.timeout_ns(state.lookup.facts(condition.code).duration, condition.presence)
    disregard_ns = deadlines.disregard_ns(state.lookup, condition.backing)
    if clearing_ns is not None and clearing_ns <= at_ns:
        if condition.presence.recovered_ns is not None and deadlines.is_held_by_once(
            state.lookup, condition, at_ns
        ):
            conditions.relevel(state, condition, duration.ended(condition), duration.ENDED)
            return
        close(state, condition, _why_time_closed(state, condition))
    elif timeout_ns is not None and timeout_ns <= at_ns:
        _time_out(state, condition)
    elif disregard_ns is not None and disregard_ns <= at_ns:
        kernel_lines.disregard(state, condition)
    else:
        state.put(condition.in_next_phase())


def _why_time_closed(state: EngineState, condition: Condition) -> str:
    if condition.origin.injected:
        return "injected faults end by themselves"
    if condition.origin.report is not None and condition.presence.present_ns is not None:
        sender = condition.origin.report.sender
        expiry_s = state.lookup.settings.public.expiry_ns(sender) // SECOND_NS
        return f"expired: {sender} has not repeated it for {expiry_s} s"
    if condition.presence.recovered_ns is not None:
        return "recovered for longer than its duration rule asks"
    return "not seen again"


def _time_out(state: EngineState, condition: Condition) -> None:
    """Its presence has lasted: raise the level, and count one occurrence where that was not in force."""
    after = conditions.relevel(state, condition, duration.timed_out(condition), duration.TIMED_OUT)
    kinds.present(state, after)
    if not condition.grade.timed_out:
        kinds.occurred(state, after, state.moment_ns)


# ---------------------------------------------------------------------- companions


def root_of(
    state: EngineState,
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
        for fault in relation.partners(state, rule, device_id, facts.key, at_ns)
        if PRECEDENCE[fault.level] >= PRECEDENCE[level] and _may_be_root(fault, is_there, but_id)
    ]
    return max(found, key=_preferred, default=None)


def _may_be_root(fault: Condition | Trace, is_there: bool, but_id: str) -> bool:
    if isinstance(fault, Condition):
        return fault.id != but_id
    return fault.root and not is_there


def _preferred(fault: Condition | Trace) -> tuple[bool, int, int, str, str]:
    open_first = isinstance(fault, Condition)
    return open_first, PRECEDENCE[fault.level], fault.occurred_ns, fault.device_id, fault.code


def keep_companion(
    state: EngineState, device_id: str, key: str, source: str, root: Condition, at_ns: int, rule: str
) -> None:
    """Its source, or a rule, shows it: it stays with its root."""
    cell = Absorbed(device_id=device_id, code=key, source=source, root_id=root.id, last_ns=at_ns, rule=rule)
    limits.remember(state, cell)


def count_in_root(state: EngineState, root_id: str, code: str, count: int) -> None:
    """Into its root's condition, and into the evidence there."""
    root = state.get(Condition, root_id)
    assert root is not None, f"no root {root_id}"
    presence = changed(root.presence, count=root.presence.count + count)
    backing = replace(root.backing, evidence=_naming(root.backing.evidence, code))
    state.put(changed(root, presence=presence, backing=backing))


def _naming(evidence: Mapping[str, str], code: str) -> Mapping[str, str]:
    named = evidence.get(_COMPANIONS, "").split(", ") if _COMPANIONS in evidence else []
    if code in named or len(named) >= _MAX_NAMED:
        return evidence
    return {**evidence, _COMPANIONS: ", ".join((*named, code))}


def end_companion(state: EngineState, device_id: str, key: str) -> bool:
    """The source reports the companion as gone, or it is a fault of its own. True if it was one."""
    absorbed = state.get(Absorbed, device_id, key)
    if absorbed is not None:
        state.drop(absorbed)
    return absorbed is not None


def end_absent_companions(
    state: EngineState, source: str, device_id: str | None, shown: frozenset[str], begun_ns: int
) -> bool:
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


def forget_companions(state: EngineState, device_id: str) -> None:
    """The device is another one from now on, which has none."""
    for cell in state.all(Absorbed):
        if cell.device_id == device_id:
            state.drop(cell)


def move_companions(state: EngineState, root: Condition, heir: Condition) -> None:
    """Another condition is the same fault as the root: its companions go with that."""
    for cell in _of(state, root):
        state.put(replace(cell, root_id=heir.id))


def _let_companions_outlive(state: EngineState, root: Condition) -> None:
    """Before the root closes: what of its companions is still there."""
    for cell in _of(state, root):
        state.drop(cell)
        if state.condition(cell.device_id, cell.code) is None:
            _outlive(state, cell, root)


def _outlive(state: EngineState, cell: Absorbed, root: Condition) -> None:
    device, facts = state.device(cell.device_id), state.lookup.facts(cell.code)
    signal = Signal(source=cell.source, device=device.name, code=facts.code, assertion=Assertion.OCCUR)
    fault = classify(state.lookup, cell.source, facts, severity_of(state, signal, facts))
    other = None
    if facts.relations is not None:
        other = root_of(state, device.id, facts, fault.level, cell.last_ns, is_there=True, but_id=root.id)
    if isinstance(other, Condition):
        count_in_root(state, other.id, facts.code, 0)
        keep_companion(state, device.id, facts.key, cell.source, other, cell.last_ns, cell.rule)
    elif make_room(state, device, fault.level, injected=False, leaving_id=root.id):
        moment_ns = state.moment_ns
        condition = opening.condition_of(
            state, device, signal, facts, fault, at_ns=moment_ns, occurred_ns=cell.last_ns, rule=cell.rule
        )
        opening.begin(
            state, device, condition, f"still there, after {root.code}, which it went with, is over"
        )
    else:
        state.overflow = f"{facts.code} on {device.name} is one too many"


def _of(state: EngineState, root: Condition) -> list[Absorbed]:
    return [cell for cell in state.cells[Absorbed].values() if cell.root_id == root.id]
