"""What a signal does: it opens a condition, keeps one open, lets it recover, or opens nothing.

Nothing is opened by a code that the tables call a notice, by a line that user space may have forged, by a
line of the previous boot, or by one that names a chip which its driver does not list: each gives a notice.

What the agent itself reports once, and only a person ends, stays in one condition until then: each report has
an event, and its text is kept next to those before it (``reason``, ``reason.2``).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from nodeagent.core.catalog.catalog import ClearOn, FrequencyRule
from nodeagent.core.catalog.codes import canonical
from nodeagent.core.catalog.lookup import Facts, classify
from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.faults import conditions, ending, kernel_lines, opening, relations
from nodeagent.core.faults.conditions import make_room
from nodeagent.core.faults.opening import ONE_CAUSE, learn_severity, lowered_if_shared, severity_of
from nodeagent.core.judge import recovery_action
from nodeagent.core.judge.events import emit, notice
from nodeagent.core.model import (
    AGENT,
    NODE,
    PREVIOUS_BOOT,
    Assertion,
    Condition,
    CountedBy,
    Device,
    EventKind,
    Kind,
    Level,
    Presence,
    Signal,
)
from nodeagent.core.rules import frequency, kinds, windows
from nodeagent.core.rules.relation import level_of_new
from nodeagent.core.rules.windows import gathered_evidence
from nodeagent.core.state import occupancy, registry
from nodeagent.core.state.cells import changed
from nodeagent.core.state.names import part_of
from nodeagent.core.state.registry import addressed
from nodeagent.core.state.state import EngineState

MAX_REASONS: Final = 16
"""Beyond it the newest takes the place of the last: each has its event."""

_ACKNOWLEDGED: Final = ClearOn(operator=True)

_TOO_MANY = "too_many_faults"

_TOO_MANY_KEY = canonical(_TOO_MANY)

_TOO_MANY_AGAIN_NS = 60 * SECOND_NS

_USER_INDUCED = FrequencyRule(
    id="(user-induced)", codes=(), times=3, time_window_ns=24 * 3600 * SECOND_NS, level=Level.NOT_HANDLE
)

_USER_INDUCED_OF_JOB = replace(_USER_INDUCED, counted_by=CountedBy.JOB)
"""Where the rule that names the code counts by job or place: the failures of one job do not reschedule
another.
"""


def signalled(state: EngineState, signal: Signal, rule: str = "") -> bool:
    """Judge one signal. True if anything changed. ``rule`` is the rule that makes it, from what it watches.

    Where a duration rule names the code, ``rules.duration`` counts it instead, and a ``once`` does not count.
    """
    facts = state.lookup.facts(signal.code)
    if signal.source == PREVIOUS_BOOT:
        return _of_previous_boot(state, signal, facts)
    signal = addressed(state, signal, facts)
    device = registry.find(state, signal.device)
    if device is not None and state.chip_of(device).traits.excluded:
        return False
    if not signal.trusted:
        return _from_user_space(state, signal, facts)
    confirms = device is not None and kernel_lines.confirm(state, device, facts, signal.source)
    if facts.row is not None and facts.row.notice:
        return _noted_only(state, signal, facts, _occurred_ns(state, signal)) or confirms
    learnt = (
        signal.severity is not None and not signal.injected and learn_severity(state, facts, signal.severity)
    )
    condition = None
    chip_name, part = part_of(signal.device)
    chip = registry.find(state, chip_name) if part else device
    if chip is None and kernel_lines.is_of_no_chip(state, signal, facts):
        return _of_no_chip(state, signal, facts)
    if device is not None:
        condition = state.condition(device.id, facts.key, signal.injected, signal.report)
    if signal.assertion is Assertion.RECOVER:
        return _recovered(state, device, condition, signal, facts) or learnt
    return _occurred(state, device, condition, signal, facts, rule) or learnt


def _occurred_ns(state: EngineState, signal: Signal) -> int:
    """The time of receipt; the source's own stamp only where it is read late, and never the future."""
    if signal.backdated and signal.last_ns is not None:
        return min(signal.last_ns, state.moment_ns)
    return state.moment_ns


def _occurred(
    state: EngineState,
    device: Device | None,
    condition: Condition | None,
    signal: Signal,
    facts: Facts,
    rule: str,
) -> bool:
    """Open a condition or renew the open one, and count it. True if that changed anything."""
    at_ns = _occurred_ns(state, signal)
    if _is_absorbed(state, device, condition, signal, facts, at_ns, rule):
        return True
    names_process = _names_process(signal, condition, at_ns)
    if condition is not None:
        condition = _renew(state, condition, signal, facts, at_ns, rule)
    else:
        condition = _opened(state, device, signal, facts, at_ns, rule)
    if condition is None:
        return device is None and registry.find(state, signal.device) is not None
    if facts.relations is not None:
        condition = relations.occurred(state, condition)
    if condition.grade.user_induced and names_process and frequency.counts_by_device(state, condition):
        frequency.process_named(state, condition, at_ns, kernel_lines.NEAR_NS)
    elif facts.duration is None:
        kinds.occurred(state, condition, at_ns, signal.count)
    return True


def _names_process(signal: Signal, before: Condition | None, at_ns: int) -> bool:
    """Whether the kernel's line names the process that it hit, be it this signal or one shortly before."""
    if occupancy.names_process(signal.evidence):
        return True
    if before is None or at_ns - before.presence.occurred_ns > kernel_lines.NEAR_NS:
        return False
    return occupancy.names_process(before.backing.evidence)


def _is_absorbed(
    state: EngineState,
    device: Device | None,
    condition: Condition | None,
    signal: Signal,
    facts: Facts,
    at_ns: int,
    rule: str,
) -> bool:
    """Whether the signal goes with a fault that was there first, and was counted there. What another system
    reports never does: only its sender knows when it is over.
    """
    if facts.relations is None or signal.injected or signal.report or not facts.relations.absorbed:
        return False
    level, kind = condition.level if condition is not None else None, None
    if level is None:
        fault = classify(state.lookup, signal.source, facts, severity_of(state, signal, facts))
        level, kind = fault.level, fault.kind
    device = device or registry.resolve(state, signal.device, kind)
    if device is None:
        return False
    if condition is None:
        level = level_of_new(state, facts, device.id, at_ns) or level
    return relations.absorb(state, device, signal, facts, level, at_ns, rule)


def _opened(
    state: EngineState, device: Device | None, signal: Signal, facts: Facts, at_ns: int, rule: str
) -> Condition | None:
    """A new condition; None where a bound was reached, or the signal names no device."""
    fault = classify(state.lookup, signal.source, facts, severity_of(state, signal, facts))
    is_own = facts.key == _TOO_MANY_KEY
    if not is_own and not make_room(
        state, device, fault.level, signal.injected, is_reported=signal.report is not None
    ):
        state.overflow = f"{signal.code} on {signal.device} is one too many"
        return None
    device = registry.resolve(state, signal.device, fault.kind)
    if device is None:
        return None
    condition = opening.condition_of(
        state, device, signal, facts, fault, at_ns=at_ns, occurred_ns=at_ns, rule=rule
    )
    condition = _count_user_induced(state, condition, signal, facts, at_ns)
    opening.begin(state, device, condition, f"{signal.assertion} from {signal.source}")
    return condition


def _renew(
    state: EngineState, condition: Condition, signal: Signal, facts: Facts, at_ns: int, rule: str
) -> Condition:
    """Another signal of an open condition. An ``occur`` begins a presence where there was none."""
    has_duration = facts.duration is not None
    presence = _reported_again(
        condition.presence, signal, at_ns, state.era.boot_id, has_duration=has_duration
    )
    after = changed(condition, presence=presence)
    if rule and rule == condition.origin.rule:
        # A repeated report of the rule that raised it brings present values.
        after = _with_evidence(after, {**condition.backing.evidence, **signal.evidence})
    if signal.report is not None:
        after = changed(after, origin=replace(after.origin, report=signal.report, reported_ns=at_ns))
    after = kernel_lines.confirmed(state, after, signal.source)
    after = kernel_lines.again(state, condition, after, signal.source)
    after = _acknowledged(state, after, signal, facts)
    if condition.grade.user_induced:
        same_occurrence = at_ns - condition.presence.occurred_ns <= kernel_lines.NEAR_NS
        gathered = gathered_evidence(after.backing.evidence, signal.evidence, same_occurrence=same_occurrence)
        if gathered != after.backing.evidence:
            after = _with_evidence(after, gathered)
    if recovery_action.only_restarts_its_job(state, condition):
        after = _count_user_induced(state, after, signal, facts, at_ns)
    if condition.grade.unknown and (lowered := lowered_if_shared(state, after)) is not after:
        after = conditions.relevel(state, condition, lowered, ONE_CAUSE)
    if signal.assertion is Assertion.OCCUR:
        return appear(state, after, signal.source, at_ns)
    state.put(after)
    return after


def _reported_again(
    presence: Presence, signal: Signal, at_ns: int, boot_id: str, *, has_duration: bool
) -> Presence:
    """With a duration rule a ``once`` is no report of a presence."""
    is_once = signal.assertion is Assertion.ONCE
    return changed(
        presence,
        count=presence.count + signal.count,
        last_ns=presence.last_ns if is_once and has_duration else max(presence.last_ns, at_ns),
        once_ns=max(presence.once_ns or 0, at_ns) if is_once else presence.once_ns,
        occurred_ns=max(presence.occurred_ns, at_ns),
        boot_id=boot_id,
    )


def _with_evidence(condition: Condition, evidence: Mapping[str, str]) -> Condition:
    return changed(condition, backing=replace(condition.backing, evidence=evidence))


def appear(state: EngineState, condition: Condition, source: str, at_ns: int) -> Condition:
    """The fault is present: from now on, where it was not already. The source that shows it can end it."""
    condition = kernel_lines.confirmed(state, condition, source)
    if not condition.presence.is_shown:
        presence = replace(condition.presence, present_ns=at_ns, recovered_ns=None, judged=False)
        condition = replace(condition, source=source, presence=presence)
        kinds.present(state, condition)
    state.put(condition)
    return condition


def _recovered(
    state: EngineState, device: Device | None, condition: Condition | None, signal: Signal, facts: Facts
) -> bool:
    if condition is not None:
        return ending.recover(state, condition)
    return device is not None and not signal.injected and ending.end_companion(state, device.id, facts.key)


def _count_user_induced(
    state: EngineState, condition: Condition, signal: Signal, facts: Facts, at_ns: int
) -> Condition:
    """From the third in 24 h the job moves instead of restarting in place."""
    if condition.origin.injected or not recovery_action.only_restarts_its_job(state, condition):
        return condition
    by_device = frequency.counts_by_device(state, condition)
    rule = _USER_INDUCED if by_device else _USER_INDUCED_OF_JOB
    before = windows.window_of(state, condition.device_id, facts.key, rule.id)
    window, third = windows.add(state, rule, condition, signal.source, at_ns, signal.count)
    is_same_burst = by_device and not third and window.occurrences_ns == before.occurrences_ns
    if is_same_burst or condition.grade.rescheduling is third:
        # Of a burst the beginning was counted.
        return condition
    return replace(condition, grade=replace(condition.grade, rescheduling=third))


def overflowed(state: EngineState) -> bool:
    """A limit was reached: a fault of the agent, renewed once a minute. Nothing is kept of the signal."""
    why, state.overflow = state.overflow, ""
    node = registry.resolve(state, NODE, Kind.NODE)
    if node is None:
        return False
    open_fault = state.condition(node.id, _TOO_MANY_KEY)
    if open_fault is not None and state.moment_ns - open_fault.presence.last_ns < _TOO_MANY_AGAIN_NS:
        return False
    once = Signal(source=AGENT, device=NODE, code=_TOO_MANY, assertion=Assertion.ONCE, evidence={"why": why})
    return signalled(state, once)


# ---------------------------------------------------------------------- notices


def _noted_only(state: EngineState, signal: Signal, facts: Facts, at_ns: int) -> bool:
    """Its row makes it a notice. A condition that opened before that is left to close.

    To relation rules it is an occurrence as any other: what ends a fault is often no fault.
    """
    if signal.assertion is Assertion.RECOVER:
        return False
    fault = classify(state.lookup, signal.source, facts, signal.severity)
    device = registry.find(state, signal.device)
    was_new = _notice(
        state, signal, facts, f"{signal.assertion} from {signal.source}; the tables list it as a notice"
    )
    if device is None or facts.relations is None or signal.injected:
        return was_new
    return relations.passed(state, device, facts, fault.level, at_ns) or was_new


def _from_user_space(state: EngineState, signal: Signal, facts: Facts) -> bool:
    """Anyone with a privileged container can write such a line: it informs."""
    why = "written to the kernel log by user space, which may forge any line"
    return _notice(state, signal, facts, why, userspace=True)


def _of_previous_boot(state: EngineState, signal: Signal, facts: Facts) -> bool:
    """What the node logged before it stopped: it may explain why, and shows nothing of the present state."""
    why = "logged in the previous boot, which no shutdown ended; nothing is done about it"
    return _notice(state, signal, facts, why, userspace=not signal.trusted)


def _of_no_chip(state: EngineState, signal: Signal, facts: Facts) -> bool:
    """A line names a chip that the vendor's driver does not list."""
    return _notice(state, signal, facts, "its vendor's driver lists no such chip")


def _notice(state: EngineState, signal: Signal, facts: Facts, why: str, userspace: bool = False) -> bool:
    """Emit it about the device if it is known, else about the node: it makes no device."""
    device = registry.find(state, signal.device) or registry.resolve(state, NODE, None)
    if device is None:
        return False
    fault = classify(state.lookup, signal.source, facts, signal.severity)
    if device.name != signal.device:
        why += f"; it names {signal.device}"
    return notice(
        state,
        device,
        code=facts.code,
        name=fault.name,
        level=fault.level,
        count=signal.count,
        userspace=userspace,
        why=why,
        source=signal.source,
        evidence=signal.evidence,
    )


# ---------------------------------------------------------------------- what only a person ends


def _acknowledged(state: EngineState, condition: Condition, signal: Signal, facts: Facts) -> Condition:
    """The open condition with what the signal adds to it; an event where that is anything."""
    is_once = signal.source == AGENT and signal.assertion is Assertion.ONCE and not signal.injected
    if not is_once or facts.clear_on != _ACKNOWLEDGED:
        return condition
    evidence = _with_reason(condition.backing.evidence, signal.evidence)
    if evidence is condition.backing.evidence:
        return condition
    after = _with_evidence(condition, evidence)
    state.put(after)
    device = state.device(after.device_id)
    emit(state, EventKind.NOTICE, device, about=after, why="once more, before it was acknowledged")
    return after


def _with_reason(known: Mapping[str, str], new: Mapping[str, str]) -> Mapping[str, str]:
    by_number: dict[int, dict[str, str]] = {}
    for key, value in known.items():
        name, number = _numbered(key)
        by_number.setdefault(number, {})[name] = value
    if not new or dict(new) in by_number.values():
        return known
    number = min(max(by_number, default=0) + 1, MAX_REASONS)
    kept = {key: value for key, value in known.items() if _numbered(key)[1] != number}
    return kept | {f"{name}.{number}" if number > 1 else name: value for name, value in new.items()}


def _numbered(key: str) -> tuple[str, int]:
    name, _, number = key.rpartition(".")
    return (name, int(number)) if name and number.isdecimal() else (key, 1)
