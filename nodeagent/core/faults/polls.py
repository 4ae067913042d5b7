"""What a poll's active set does: it heals lost callbacks both ways. An incomplete set closes nothing,
and a complete one nothing of what it could not ask for.
"""

from dataclasses import replace

from nodeagent.core.catalog import unknown_codes
from nodeagent.core.catalog.codes import root
from nodeagent.core.catalog.lookup import Facts
from nodeagent.core.devices import registry, sources
from nodeagent.core.faults import closing, companions, kernel_lines, signals
from nodeagent.core.model import (
    ALL_DEVICES,
    Absorbed,
    ActiveCode,
    ActiveSet,
    Assertion,
    Condition,
    Device,
    Noticed,
    Ordinal,
    Signal,
)
from nodeagent.core.rules import frequency, relation_pairs
from nodeagent.core.state.state import State


def polled(state: State, given: ActiveSet) -> bool:
    """Open what is active and not open, close what is open and not active. True if anything changed.

    A set that speaks for every device of its source cannot say on which of them a code is active:
    such codes open nothing, and are taken as shown wherever they are open.
    """
    changed = False
    everywhere = given.device == ALL_DEVICES
    for active in given.codes:
        changed = unknown_codes.learn(state, state.lookup.facts(active.code), active.severity) or changed
        if not everywhere:
            changed = _shown(state, given, active) or changed
    if not given.complete:
        return changed
    device = None if everywhere else registry.find(state, given.device)
    if device is not None or everywhere:
        changed = _close_absent(state, given, device) or changed
    return sources.read(state, given.source, given.device) or changed


def _shown(state: State, given: ActiveSet, active: ActiveCode) -> bool:
    device = registry.find(state, given.device)
    facts = state.lookup.facts(active.code)
    condition = state.condition(device.id, facts.key) if device is not None else None
    if condition is None:
        if device is not None and _is_explained(state, given, device, facts):
            return False
        return _heal(state, given, active)
    if condition.recovered_ns is not None:
        return condition.last_ns < given.begun_ns and _heal(state, given, active)
    if condition.present_ns is None and _is_older(state, given, condition.device_id, facts):
        return False
    condition = _confirmed(state, condition, given.source, facts)
    seen = replace(condition, boot_id=state.era.boot_id)
    if condition.present_ns is None:
        signals.appear(state, seen, given.source, state.moment_ns)
    elif seen != condition:
        state.put(seen)
    else:
        return False
    return True


def _confirmed(state: State, condition: Condition, source: str, facts: Facts) -> Condition:
    """What a kernel line reported counts as it came, once the driver shows it too."""
    after = kernel_lines.confirmed(state, condition, source)
    if after is not condition and facts.duration is None:
        frequency.occurred(state, after, after.occurred_ns)
    return after


def _is_explained(state: State, given: ActiveSet, device: Device, facts: Facts) -> bool:
    """It is absorbed, the driver has said that it is over since it was asked for this set, or it is one that
    opens nothing, and has its notice.
    """
    if facts.row is not None and facts.row.notice:
        return state.get(Noticed, device.id, facts.code) is not None
    return (
        _is_older(state, given, device.id, facts)
        or relation_pairs.absorbed(state, device.id, facts.key) is not None
    )


def _is_older(state: State, given: ActiveSet, device_id: str, facts: Facts) -> bool:
    """Whether the driver has said that the fault is over since it was asked for this set."""
    ordinal = state.get(Ordinal, device_id, facts.key)
    return ordinal is not None and ordinal.recovered_ns >= given.begun_ns


def _heal(state: State, given: ActiveSet, active: ActiveCode) -> bool:
    """The callback that said so was lost."""
    occur = Signal(
        source=given.source,
        device=given.device,
        code=active.code,
        assertion=Assertion.OCCUR,
        severity=active.severity,
        evidence=active.evidence,
    )
    return signals.signalled(state, occur)


def _close_absent(state: State, given: ActiveSet, device: Device | None) -> bool:
    """``device`` None: the set speaks for every device of its source."""
    if device is not None and _is_clean(state, device):
        return False
    device_id = device.id if device is not None else None
    shown = frozenset(state.lookup.facts(active.code).key for active in given.codes)
    shown |= _unread(state, given, device_id)
    # First the companions: one that has gone with its root must not outlive it.
    changed = companions.absent(state, given.source, device_id, shown, given.begun_ns)
    still: set[tuple[str, str]] = set()
    for condition in state.all(Condition) if device is None else state.on(Condition, device.id):
        key = state.lookup.facts(condition.code).key
        if condition.source != given.source or condition.injected or condition.rule:
            continue
        if key in shown:
            still.add((condition.device_id, key))
        elif condition.present_ns is not None and condition.last_ns < given.begun_ns:
            changed = closing.recover(state, condition) or changed
    if device is not None and device.source == given.source:
        changed = kernel_lines.contradicted(state, device, shown, given.begun_ns) or changed
    return closing.close_after_reboot(state, given.source, device, frozenset(still)) or changed


def _is_clean(state: State, device: Device) -> bool:
    """Whether nothing is open on it or on its parts, nor goes with what is: so it is at most polls."""
    if state.cells[Absorbed] or state.on(Condition, device.id):
        return False
    return not any(state.on(Condition, part.id) for part in state.parts(device.id))


def _unread(state: State, given: ActiveSet, device_id: str | None) -> frozenset[str]:
    """The open codes that the set says nothing about, as they are compared."""
    if not given.unread:
        return frozenset()
    roots = frozenset(map(root, given.unread))
    on_devices: tuple[Condition | Absorbed, ...] = (*state.all(Condition), *state.all(Absorbed))
    keys = (state.lookup.facts(each.code).key for each in on_devices if device_id in (None, each.device_id))
    return frozenset(key for key in keys if root(key) in roots)
