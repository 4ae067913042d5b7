"""What a signal or a poll's active set does: open a condition, keep it alive, or let it recover."""

from dataclasses import replace

from nodeagent.core import clearing, devices, duration, frequency, sources
from nodeagent.core.catalog import SECOND_NS, FrequencyRule
from nodeagent.core.classify import SHARED_NS, Fault, classify
from nodeagent.core.model import (
    ALL_DEVICES,
    NODE,
    ActiveSet,
    Assertion,
    Condition,
    Device,
    EventKind,
    Held,
    Kind,
    Level,
    Severity,
    Signal,
    Window,
)
from nodeagent.core.notices import notice
from nodeagent.core.state import State
from nodeagent.core.telling import tell

MAX_CONDITIONS = 4096

_TOO_MANY = "too_many_faults"
_USER_INDUCED = FrequencyRule(
    id="user-induced", codes=(), times=3, time_window_ns=24 * 3600 * SECOND_NS, level=Level.NOT_HANDLE
)
_BURST_NS = {"kmsg": 180 * SECOND_NS}
"""Sources that tell one fault in many lines; what lies this close together is one occurrence."""


def signalled(state: State, signal: Signal) -> bool:
    """Judge one signal. True if anything changed."""
    severity = _learn(state, signal)
    fault = classify(state.lookup, signal.source, signal.code, severity)
    if not signal.trusted:
        return _from_user_space(state, signal, fault)
    if signal.assertion is Assertion.RECOVER:
        device = devices.find(state, signal.device)
        condition = state.condition(device.id, signal.code, signal.injected) if device else None
        return condition is not None and clearing.recover(state, condition)
    device = devices.resolve(state, signal.device, fault.kind)
    if device is None:
        return _too_many(state, f"{signal.device} is one device too many")
    condition = state.condition(device.id, signal.code, signal.injected)
    at_ns = _occurred_ns(state, signal)
    if condition is None:
        condition = _open(state, device, signal, fault, severity, at_ns)
    else:
        condition = _renew(state, condition, signal, at_ns)
    if condition is None:
        return _too_many(state, f"{signal.code} on {device.name} is one condition too many")
    _occurrence(state, condition, signal, at_ns)
    return True


def polled(state: State, given: ActiveSet) -> bool:
    """The codes active now heal lost callbacks both ways; an incomplete set closes nothing."""
    changed = False
    shown: set[tuple[str, str]] = set()
    for active in given.codes:
        device = devices.find(state, given.device)
        condition = state.condition(device.id, active.code) if device else None
        if condition is None or condition.present_ns is None or condition.recovered_ns is not None:
            occur = Signal(
                source=given.source,
                device=given.device,
                code=active.code,
                assertion=Assertion.OCCUR,
                severity=active.severity,
            )
            changed = signalled(state, occur) or changed
            device = devices.find(state, given.device)
        elif condition.boot_id != state.era.boot_id:
            state.put(replace(condition, boot_id=state.era.boot_id))
            changed = True
        if device is not None:
            shown.add((device.id, active.code))
    if not given.complete:
        return changed
    changed = _close_absent(state, given, frozenset(shown)) or changed
    return sources.read(state, given.source, given.device) or changed


def _close_absent(state: State, given: ActiveSet, shown: frozenset[tuple[str, str]]) -> bool:
    changed = False
    device = devices.find(state, given.device)
    for condition in list(state.all(Condition)):
        if condition.source != given.source or condition.injected:
            continue
        if given.device != ALL_DEVICES and (device is None or condition.device_id != device.id):
            continue
        if (condition.device_id, condition.code) in shown or condition.last_ns >= given.begun_ns:
            continue
        if condition.present_ns is not None:
            changed = clearing.recover(state, condition) or changed
    everywhere = given.device == ALL_DEVICES
    still = shown if everywhere else shown | _elsewhere(state, given.source, device)
    return clearing.close_after_reboot(state, given.source, still) or changed


def _elsewhere(state: State, source: str, device: Device | None) -> frozenset[tuple[str, str]]:
    """What a set of one device says nothing of: the source's conditions on the others."""
    return frozenset(
        (condition.device_id, condition.code)
        for condition in state.all(Condition)
        if condition.source == source and (device is None or condition.device_id != device.id)
    )


def _open(
    state: State, device: Device, signal: Signal, fault: Fault, severity: int | None, at_ns: int
) -> Condition | None:
    if len(state.cells[Condition]) >= MAX_CONDITIONS and signal.code != _TOO_MANY:
        return None
    key = f"{signal.code}!injected" if signal.injected else signal.code
    held = state.get(Held, device.id)
    condition = Condition(
        id=f"{device.id}/{key}#{state.next_ordinal(device.id, key)}",
        device_id=device.id,
        code=signal.code,
        name=fault.name,
        source=signal.source,
        base_level=fault.level,
        level=fault.level,
        opened_ns=at_ns,
        last_ns=at_ns,
        count=signal.count,
        present_ns=at_ns if signal.assertion is Assertion.OCCUR else None,
        level_since_ns=at_ns,
        held_by=held.holders if held else None,
        severity=severity,
        unknown=fault.unknown,
        affects=fault.affects,
        user_induced=fault.user_induced,
        injected=signal.injected,
        affect_verdict=signal.affect_verdict,
        boot_id=state.era.boot_id,
        evidence=signal.evidence,
    )
    condition = _shared(state, device, condition)
    state.put(condition)
    why = f"{signal.assertion} from {signal.source}"
    tell(state, EventKind.RAISED, device, about=condition, why=why)
    return condition


def _renew(state: State, condition: Condition, signal: Signal, at_ns: int) -> Condition:
    """Another signal of an open condition. An ``occur`` begins a presence where there was none."""
    after = replace(
        condition,
        count=condition.count + signal.count,
        last_ns=max(condition.last_ns, at_ns),
        boot_id=state.era.boot_id,
    )
    absent = condition.present_ns is None or condition.recovered_ns is not None
    if signal.assertion is Assertion.OCCUR and absent:
        after = replace(after, present_ns=at_ns, recovered_ns=None, judged=False)
    state.put(after)
    return after


def _occurrence(state: State, condition: Condition, signal: Signal, at_ns: int) -> None:
    """Count it. With a duration rule an ``occur`` counts when its time-out is reached, not now."""
    if condition.user_induced and not condition.injected:
        condition = _count_user_induced(state, condition, signal, at_ns)
    if signal.assertion is Assertion.OCCUR and state.lookup.duration_rule(condition.code) is not None:
        return
    frequency.occurred(state, condition, at_ns, signal.count)


def _count_user_induced(state: State, condition: Condition, signal: Signal, at_ns: int) -> Condition:
    """From the third in 24 h the job moves instead of restarting in place."""
    rule = replace(_USER_INDUCED, burst_ns=_BURST_NS.get(signal.source, 0))
    window = state.get(Window, condition.device_id, condition.code, rule.id) or Window(
        device_id=condition.device_id, code=condition.code, rule=rule.id
    )
    window, third = frequency.count(window, rule, at_ns, signal.count)
    state.put(window)
    after = replace(condition, rescheduling=third)
    state.put(after)
    return after


def _shared(state: State, device: Device, condition: Condition) -> Condition:
    """An unknown code of unknown severity on two chips is hardly two broken chips: no new jobs, no more."""
    undecided = condition.unknown and condition.severity is None and condition.level is Level.SEPARATE_NPU
    if not undecided or device.kind is not Kind.CHIP or state.lookup.settings.unknown_level is not None:
        return condition
    shared = False
    for other in list(state.all(Condition)):
        near = abs(condition.opened_ns - other.opened_ns) <= SHARED_NS
        if other.code != condition.code or other.device_id == device.id or not near or other.injected:
            continue
        shared = True
        if other.unknown and other.level is Level.SEPARATE_NPU and other.severity is None:
            _lower(state, other)
    if not shared:
        return condition
    return replace(condition, base_level=Level.PRE_SEPARATE_NPU, level=Level.PRE_SEPARATE_NPU)


def _lower(state: State, other: Condition) -> None:
    lowered = replace(
        other, base_level=Level.PRE_SEPARATE_NPU, level=Level.PRE_SEPARATE_NPU, level_since_ns=state.moment_ns
    )
    lowered = replace(
        lowered, level=duration.level_in_force(state, other.code, lowered.base_level, other.timed_out)
    )
    state.put(lowered)
    why = "the same unknown code came on another chip: one cause"
    tell(state, EventKind.LEVEL_CHANGED, state.device(other.device_id), about=lowered, why=why)


def _learn(state: State, signal: Signal) -> int | None:
    """The severity the driver gives with a code, remembered for signals that come without."""
    learnt = state.get(Severity, signal.code)
    if signal.severity is None:
        return learnt.severity if learnt else None
    if learnt is None or learnt.severity != signal.severity:
        state.put(Severity(code=signal.code, severity=signal.severity))
    return signal.severity


def _from_user_space(state: State, signal: Signal, fault: Fault) -> bool:
    """Anyone with a privileged container can write such a line: it informs, and makes no device."""
    device = devices.find(state, signal.device) or devices.resolve(state, NODE, None)
    if device is None:
        return False
    why = "written to the kernel log by user space, which may forge any line"
    if device.name != signal.device:
        why += f"; it names {signal.device}"
    return notice(
        state,
        device,
        code=signal.code,
        name=fault.name,
        level=fault.level,
        count=signal.count,
        userspace=True,
        why=why,
        source=signal.source,
        evidence=signal.evidence,
    )


def _too_many(state: State, why: str) -> bool:
    """A bound was reached: said once as a fault of the agent, and nothing is kept of the signal."""
    node = devices.resolve(state, NODE, Kind.NODE)
    if node is None or state.condition(node.id, _TOO_MANY) is not None:
        return False
    return signalled(
        state,
        Signal(source="agent", device=NODE, code=_TOO_MANY, assertion=Assertion.ONCE, evidence={"why": why}),
    )


def _occurred_ns(state: State, signal: Signal) -> int:
    """The time of receipt; the source's own stamp only where it is read late, and never the future."""
    if signal.backdated and signal.last_ns is not None:
        return min(signal.last_ns, state.moment_ns)
    return state.moment_ns
