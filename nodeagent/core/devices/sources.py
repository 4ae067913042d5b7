"""What is not observed is not judged: sources lost, back, and awaited after a start."""

from dataclasses import replace

from nodeagent.core.devices import forget, holders, registry
from nodeagent.core.faults import closing, reported
from nodeagent.core.jobs import supervisor_reports
from nodeagent.core.model import (
    ALL_DEVICES,
    NODE,
    PUBLIC,
    Condition,
    Device,
    EventKind,
    ExpectedSource,
    Loss,
    Promotion,
    Source,
    SourceAbsent,
    SourceBack,
    SourceLost,
    Started,
)
from nodeagent.core.resets import proposals
from nodeagent.core.state import deadlines
from nodeagent.core.state.state import State
from nodeagent.core.verdicts.emit import emit

_NOT_POLLED = frozenset({"agent", PUBLIC})
"""Sources that are not polled: the agent itself, and others who report to it."""


def started(state: State, given: Started) -> bool:
    """A daemon begins: every source that ever spoke is awaited, its timers held, the last verdicts stand."""
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
        registry.unread(state)
    reported.began_again(state)
    holders.began_again(state)
    proposals.began_again(state)
    supervisor_reports.began_again(state)
    state.rearm()
    why = f"nodeagent {given.version}" + (" after a reboot" if rebooted else "")
    why += f"; {given.doubt}" if given.doubt else ""
    emit(state, EventKind.STARTED, state.device(state.node_id), source="agent", why=why)
    if rebooted:
        holders.rebooted(state)
        supervisor_reports.rebooted(state)
        for name in sorted(_NOT_POLLED):
            closing.close_after_reboot(state, name, None, frozenset())
    return True


def history_begun(state: State, name: str) -> bool:
    """A source that is new reports the past: what follows waits for the rest, as after a start.

    True if it is new.
    """
    whole = state.get(Source, name, "")
    if whole is not None and not whole.absent:
        return False
    state.put(_awaited(whole or Source(name=name), state.now_ns))
    state.rearm()
    return True


def _await(state: State, name: str, expected: ExpectedSource | None) -> None:
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


def absent(state: State, given: SourceAbsent) -> bool:
    """Nothing of it is here, so nothing of it is missed: also not what was lost before this start."""
    before = state.get(Source, given.source, "")
    needed = before is not None and before.needed
    after = Source(name=given.source, unread=True, stale=True, absent=True, needed=needed)
    if before == after:
        return False
    for cell in _of_devices(state, given.source):
        state.drop(cell)
    state.put(after)
    state.rearm()
    if before is not None and before.lost_ns is not None:
        why = f"it is not here: {given.reason}; was lost: {before.reason}"
        emit(state, EventKind.SOURCE_BACK, state.device(state.node_id), source=given.source, why=why)
    return True


def lost(state: State, given: SourceLost) -> bool:
    """The source, or its view of one device, no longer observes; its timers are held until it does."""
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
    state.rearm()
    about = device or state.device(state.node_id)
    emit(state, EventKind.SOURCE_LOST, about, source=given.source, why=given.reason)
    return True


def _blinds(how: Loss, needed: bool) -> bool:
    """Whether the node is not observed without it. One that runs and hears nothing may be gone without, if it
    is none of those that are needed: a BMC is silent for minutes while it starts anew.
    """
    return how is Loss.NOT_RUNNING or (how is Loss.NOT_READ and needed)


def back(state: State, given: SourceBack) -> bool:
    return read(state, given.source, given.device or ALL_DEVICES, given.required)


def read(state: State, source: str, device_name: str, required: bool | None = None) -> bool:
    """A complete read of a device, or of all, was made: timers run on from where they were.

    ``required`` None: as it was. The node is no device of a source: that it is observed says only a read of
    all.
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
    state.rearm()
    _emit_back(state, before, state.device(device.id))
    return True


def _read_all(state: State, source: str, required: bool | None) -> bool:
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
    forget.forget_unlisted(state, source)
    state.rearm()
    if whole is not None:
        _emit_back(state, whole, state.device(state.node_id))
    for cell in alone:
        # A chip that only lines named may just have been forgotten.
        if (device := state.get(Device, cell.device_id)) is not None:
            _emit_back(state, cell, device)
    return True


def _of_devices(state: State, source: str) -> list[Source]:
    return [cell for cell in state.all(Source) if cell.name == source and cell.device_id]


def _emit_back(state: State, before: Source, device: Device) -> None:
    if before.lost_ns is not None:
        emit(state, EventKind.SOURCE_BACK, device, source=before.name, why=f"was lost: {before.reason}")


def due(state: State, source: Source) -> None:
    """Not read since the start: the last verdicts stand no longer, or the held timers run on."""
    held_ns = deadlines.held_until_ns(state.lookup, source)
    stale_ns = deadlines.stale_ns(state.lookup, source)
    after = replace(
        source,
        awaited=source.awaited and (held_ns is None or held_ns > state.moment_ns),
        stale=source.stale or (stale_ns is not None and stale_ns <= state.moment_ns),
    )
    state.put(after)
    if after.awaited != source.awaited:
        state.rearm()
