"""Sources: lost, back, awaited after a start, and what a poll of one does. What is not observed is not
judged.

A poll heals lost callbacks both ways. An incomplete poll closes nothing, and a complete one nothing of what
it could not ask for.
"""

from dataclasses import replace

from nodeagent.core.catalog.codes import root
from nodeagent.core.catalog.lookup import Facts
from nodeagent.core.faults import ending, kernel_lines, opening, reported, signals
from nodeagent.core.judge.events import emit
from nodeagent.core.machines import devices, reset_proposals, supervisor_reports, users
from nodeagent.core.model import (
    AGENT,
    ALL_DEVICES,
    NODE,
    PUBLIC,
    Absorbed,
    ActiveCode,
    ActiveSet,
    Assertion,
    Condition,
    Device,
    EventKind,
    ExpectedSource,
    Loss,
    Noticed,
    Ordinal,
    Promotion,
    Signal,
    Source,
    SourceAbsent,
    SourceBack,
    SourceLost,
    Started,
)
from nodeagent.core.rules import kinds, relation
from nodeagent.core.state import deadlines, registry
from nodeagent.core.state.state import EngineState

_NOT_POLLED = frozenset({AGENT, PUBLIC})
"""Sources that are not polled: the agent itself, and other systems that report to it."""


def started(state: EngineState, given: Started) -> bool:
    """A daemon begins: every source that ever reported is awaited, its timers are paused, verdicts hold."""
    registry.resolve(state, NODE, None)
    era = state.era
    rebooted = bool(era.boot_id) and era.boot_id != given.boot_id
    state.put(replace(era, boot_id=given.boot_id, started_ns=state.now_ns, rebooted=rebooted))
    expected = {source.name: source for source in given.sources}
    names = {cell.name for cell in state.all(Source)} | expected.keys()
    names |= {cell.source for cell in state.all(Condition)} | {cell.source for cell in state.all(Promotion)}
    names |= {cell.source for cell in state.all(Device)}
    for name in sorted(names - _NOT_POLLED - {""}):
        _await(state, name, expected.get(name))
    if rebooted:
        registry.all_unread(state)
    reported.began_again(state)
    users.began_again(state)
    reset_proposals.began_again(state)
    supervisor_reports.began_again(state)
    deadlines.rearm(state)
    why = f"nodeagent {given.version}" + (" after a reboot" if rebooted else "")
    why += f"; {given.doubt}" if given.doubt else ""
    emit(state, EventKind.STARTED, state.device(state.node_id), source=AGENT, why=why)
    if rebooted:
        users.rebooted(state)
        supervisor_reports.rebooted(state)
        for name in sorted(_NOT_POLLED):
            ending.close_after_reboot(state, name, None, frozenset())
    return True


def history_begun(state: EngineState, name: str) -> bool:
    """A source that is new reports the past: what follows waits for the rest, as after a start.

    True if it is new.
    """
    whole = state.get(Source, name, "")
    if whole is not None and not whole.absent:
        return False
    state.put(_awaited(whole or Source(name=name), state.now_ns))
    deadlines.rearm(state)
    return True


def _await(state: EngineState, name: str, expected: ExpectedSource | None) -> None:
    """``expected``: None where it is not to be read. What was absent is so in this boot, until it is read."""
    for cell in _of_devices(state, name):
        if cell.lost_ns is None:
            state.drop(cell)
        else:
            state.put(_awaited(cell, state.now_ns))
    before = state.get(Source, name, "")
    is_new = before is None or state.era.rebooted
    whole = before or Source(name=name)
    if expected is None:
        whole = replace(whole, needed=False, blind=False)
    else:
        is_blind = whole.blind or (is_new and expected.lists)
        whole = replace(whole, needed=expected.needed, blind=is_blind)
    state.put(_awaited(whole, state.now_ns) if is_new or not whole.absent else whole)


def _awaited(source: Source, now_ns: int) -> Source:
    return replace(source, awaited=True, unread=True, awaited_since_ns=now_ns, stale=False, absent=False)


def absent(state: EngineState, given: SourceAbsent) -> bool:
    """Nothing of it is here, so nothing of it is missed: also not what was lost before this start."""
    before = state.get(Source, given.source, "")
    needed = before is not None and before.needed
    after = Source(name=given.source, unread=True, stale=True, absent=True, needed=needed)
    if before == after:
        return False
    for cell in _of_devices(state, given.source):
        state.drop(cell)
    state.put(after)
    deadlines.rearm(state)
    if before is not None and before.lost_ns is not None:
        why = f"it is not here: {given.reason}; was lost: {before.reason}"
        emit(state, EventKind.SOURCE_BACK, state.device(state.node_id), source=given.source, why=why)
    return True


def lost(state: EngineState, given: SourceLost) -> bool:
    """The source, or its view of one device, no longer observes; its timers are paused until it does."""
    device = registry.find(state, given.device) if given.device else None
    if given.device and device is None:
        return False
    device_id = device.id if device else ""
    before = state.get(Source, given.source, device_id)
    needed = not device_id and before is not None and before.needed
    since_ns = before.lost_ns if before is not None and before.lost_ns is not None else state.moment_ns
    after = Source(
        name=given.source,
        device_id=device_id,
        lost_ns=since_ns,
        reason=given.reason,
        required=given.required,
        awaited=True,
        awaited_since_ns=since_ns,
        needed=needed,
        blind=not device_id and _blinds(given.how, needed),
    )
    if after == before:
        return False
    if not device_id:
        for cell in _of_devices(state, given.source):
            state.drop(cell)
    state.put(after)
    deadlines.rearm(state)
    about = device or state.device(state.node_id)
    emit(state, EventKind.SOURCE_LOST, about, source=given.source, why=given.reason)
    return True


def _blinds(how: Loss, needed: bool) -> bool:
    """Whether the node is not observed without it. One that runs and gets no answer is not missed unless it
    is needed: a BMC is silent for minutes while it restarts.
    """
    return how is Loss.NOT_RUNNING or (how is Loss.NOT_READ and needed)


def back(state: EngineState, given: SourceBack) -> bool:
    return read(state, given.source, given.device or ALL_DEVICES, given.required)


def read(state: EngineState, source: str, device_name: str, required: bool | None = None) -> bool:
    """A complete read of a device, or of all, was made: timers run on from where they were.

    ``required`` None: as it was. The node is no device of a source: only a read of all shows that it is
    observed.
    """
    if device_name == ALL_DEVICES:
        return _read_all(state, source, required)
    device = registry.find(state, device_name)
    if device is None or device.name == NODE:
        return False
    first = registry.has_been_read(state, device, source)
    before = state.source_of(source, device.id)
    if before is None or before.observes:
        return first
    state.put(Source(name=source, device_id=device.id))
    deadlines.rearm(state)
    _emit_back(state, before, state.device(device.id))
    return True


def _read_all(state: EngineState, source: str, required: bool | None) -> bool:
    whole = state.get(Source, source, "")
    alone = _of_devices(state, source)
    if required is None:
        required = whole is not None and whole.required
    after = Source(name=source, required=required, needed=whole is not None and whole.needed)
    firsts = [registry.has_been_read(state, device, source) for device in state.all(Device)]
    if whole == after and not alone:
        return any(firsts)
    for cell in alone:
        state.drop(cell)
    state.put(after)
    devices.forget_unlisted(state, source)
    deadlines.rearm(state)
    if whole is not None:
        _emit_back(state, whole, state.device(state.node_id))
    for cell in alone:
        # A chip that only lines named may just have been forgotten.
        if (device := state.get(Device, cell.device_id)) is not None:
            _emit_back(state, cell, device)
    return True


def _of_devices(state: EngineState, source: str) -> list[Source]:
    return [cell for cell in state.all(Source) if cell.name == source and cell.device_id]


def _emit_back(state: EngineState, before: Source, device: Device) -> None:
    if before.lost_ns is not None:
        emit(state, EventKind.SOURCE_BACK, device, source=before.name, why=f"was lost: {before.reason}")


def due(state: EngineState, source: Source) -> None:
    """Not read since the start: the last verdicts hold no longer, or the paused timers run on."""
    held_ns = deadlines.held_until_ns(state.lookup, source)
    stale_ns = deadlines.stale_ns(state.lookup, source)
    after = replace(
        source,
        awaited=source.awaited and (held_ns is None or held_ns > state.moment_ns),
        stale=source.stale or (stale_ns is not None and stale_ns <= state.moment_ns),
    )
    state.put(after)
    if after.awaited != source.awaited:
        deadlines.rearm(state)


def polled(state: EngineState, given: ActiveSet) -> bool:
    """Open what is active and not open, close what is open and not active. True if anything changed.

    A set that covers every device of its source cannot show on which of them a code is active:
    such codes open nothing, and are taken as shown wherever they are open.
    """
    changed = False
    everywhere = given.device == ALL_DEVICES
    for active in given.codes:
        changed = opening.learn_severity(state, state.lookup.facts(active.code), active.severity) or changed
        if not everywhere:
            changed = _shown(state, given, active) or changed
    if not given.complete:
        return changed
    device = None if everywhere else registry.find(state, given.device)
    if device is not None or everywhere:
        changed = _close_absent(state, given, device) or changed
    return read(state, given.source, given.device) or changed


def _shown(state: EngineState, given: ActiveSet, active: ActiveCode) -> bool:
    device = registry.find(state, given.device)
    facts = state.lookup.facts(active.code)
    condition = state.condition(device.id, facts.key) if device is not None else None
    if condition is None:
        if device is not None and _is_explained(state, given, device, facts):
            return False
        return _heal(state, given, active)
    if condition.presence.recovered_ns is not None:
        return condition.presence.last_ns < given.begun_ns and _heal(state, given, active)
    if condition.presence.present_ns is None and _is_older(state, given, condition.device_id, facts):
        return False
    condition = _confirmed(state, condition, given.source, facts)
    presence = condition.presence
    seen = replace(condition, presence=replace(presence, boot_id=state.era.boot_id))
    if presence.present_ns is None:
        signals.appear(state, seen, given.source, state.moment_ns)
    elif seen != condition:
        state.put(seen)
    else:
        return False
    return True


def _confirmed(state: EngineState, condition: Condition, source: str, facts: Facts) -> Condition:
    """What a kernel line reported counts as it came, once the driver shows it too."""
    after = kernel_lines.confirmed(state, condition, source)
    if after is not condition and facts.duration is None:
        kinds.occurred(state, after, after.occurred_ns)
    return after


def _is_explained(state: EngineState, given: ActiveSet, device: Device, facts: Facts) -> bool:
    """It is absorbed, the driver has reported its recovery since it was asked for this set, or it is one that
    opens nothing, and has its notice.
    """
    if facts.row is not None and facts.row.notice:
        return state.get(Noticed, device.id, facts.code) is not None
    return (
        _is_older(state, given, device.id, facts)
        or relation.absorbed(state, device.id, facts.key) is not None
    )


def _is_older(state: EngineState, given: ActiveSet, device_id: str, facts: Facts) -> bool:
    """Whether the driver has reported the fault as over since it was asked for this set."""
    ordinal = state.get(Ordinal, device_id, facts.key)
    return ordinal is not None and ordinal.recovered_ns >= given.begun_ns


def _heal(state: EngineState, given: ActiveSet, active: ActiveCode) -> bool:
    """The callback that reported it was lost."""
    occur = Signal(
        source=given.source,
        device=given.device,
        code=active.code,
        assertion=Assertion.OCCUR,
        severity=active.severity,
        evidence=active.evidence,
    )
    return signals.signalled(state, occur)


def _close_absent(state: EngineState, given: ActiveSet, device: Device | None) -> bool:
    """``device`` None: the set covers every device of its source."""
    if device is not None and _is_clean(state, device):
        return False
    device_id = device.id if device is not None else None
    shown = frozenset(state.lookup.facts(active.code).key for active in given.codes)
    shown |= _unread(state, given, device_id)
    # First the companions: one that has gone with its root must not outlive it.
    changed = ending.end_absent_companions(state, given.source, device_id, shown, given.begun_ns)
    still: set[tuple[str, str]] = set()
    for condition in state.all(Condition) if device is None else state.on(Condition, device.id):
        if condition.source != given.source or condition.origin.injected or condition.origin.rule:
            continue
        key = state.lookup.facts(condition.code).key
        if key in shown:
            still.add((condition.device_id, key))
        elif condition.presence.present_ns is not None and condition.presence.last_ns < given.begun_ns:
            changed = ending.recover(state, condition) or changed
    if device is not None and device.source == given.source:
        changed = kernel_lines.contradicted(state, device, shown, given.begun_ns) or changed
    return ending.close_after_reboot(state, given.source, device, frozenset(still)) or changed


def _is_clean(state: EngineState, device: Device) -> bool:
    """Whether nothing is open on it or on its parts, nor goes with what is: so it is at most polls."""
    if state.cells[Absorbed] or state.on(Condition, device.id):
        return False
    return not any(state.on(Condition, part.id) for part in state.parts(device.id))


def _unread(state: EngineState, given: ActiveSet, device_id: str | None) -> frozenset[str]:
    """The open codes that could not be asked for, as they are compared."""
    if not given.unread:
        return frozenset()
    roots = frozenset(map(root, given.unread))
    on_devices: tuple[Condition | Absorbed, ...] = (*state.all(Condition), *state.all(Absorbed))
    keys = (state.lookup.facts(each.code).key for each in on_devices if device_id in (None, each.device_id))
    return frozenset(key for key in keys if root(key) in roots)
