"""Events: what happened to a device, with its state after the change; and notices, events that open nothing.

Every change of verdict or handling is in exactly one event. One kind of notice is emitted at most once a
minute, with its count. Nothing here changes anything but what was last shown.
"""

from collections.abc import Mapping
from dataclasses import replace

from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.judge.judge import judgement
from nodeagent.core.model import (
    Condition,
    Device,
    Event,
    EventKind,
    JobNote,
    Level,
    Noticed,
    Promotion,
    Shown,
)
from nodeagent.core.state.derived import Judgement
from nodeagent.core.state.limits import MAX_NOTICED
from nodeagent.core.state.registry import CHIPS_BEHIND, names_behind
from nodeagent.core.state.state import EngineState


def emit(
    state: EngineState,
    kind: EventKind,
    device: Device,
    *,
    about: Condition | Promotion | None = None,
    condition_level: Level | None = None,
    code: str = "",
    name: str = "",
    rule: str = "",
    source: str = "",
    condition_id: str = "",
    count: int = 1,
    userspace: bool = False,
    why: str = "",
    evidence: Mapping[str, str] | None = None,
    job: JobNote | None = None,
) -> None:
    """Add one event about the device. ``about`` fills the fields that concern a condition or promotion."""
    if state.muted:
        return
    now = judgement(state, device)
    _show(state, device.id, now, state.moment_ns)
    condition = about if isinstance(about, Condition) else None
    if evidence is None:
        evidence = condition.backing.evidence if condition else {}
    if about is not None and (chips := names_behind(state, device)):
        evidence = {**evidence, CHIPS_BEHIND: chips}
    state.events.append(
        Event(
            kind=kind,
            at_ns=state.moment_ns,
            device=device.name,
            device_id=device.id,
            device_kind=device.kind,
            level=now.level,
            verdict=now.verdict,
            handling=now.handling,
            subhealthy=now.subhealthy,
            network_unhealthy=now.network_unhealthy,
            observed=now.observed,
            code=about.code if about else code,
            name=about.name if about else name,
            condition_id=about.id if about else condition_id,
            condition_level=about.level if about else condition_level,
            rule=about.rule if isinstance(about, Promotion) else rule,
            source=about.source if about else source,
            count=condition.presence.count if condition else count,
            user_induced=condition.grade.user_induced if condition else False,
            unknown=condition.grade.unknown if condition else False,
            injected=condition.origin.injected if condition else False,
            userspace=userspace,
            why=why,
            reasons=now.reasons,
            evidence=evidence,
            job=job,
        )
    )


def settle(state: EngineState) -> None:
    """Emit the changes of verdict or handling that no event has carried yet."""
    if state.muted:
        return
    while state.dirty:
        device_id = next(iter(state.dirty))
        del state.dirty[device_id]
        device = state.get(Device, device_id)
        if device is None:
            continue
        now = judgement(state, device)
        before = state.get(Shown, device_id) or Shown(device_id=device_id)
        if (now.verdict, now.handling) != (before.verdict, before.handling):
            why = f"{before.verdict}, {before.handling} -> {now.verdict}, {now.handling}"
            emit(state, EventKind.VERDICT_CHANGED, device, why=why)


def show_as_emitted(state: EngineState) -> None:
    """After a muted replay: take what follows from the state as what the published events have shown."""
    state.dirty.clear()
    for device in state.all(Device):
        now = judgement(state, device)
        _show(state, device.id, now, state.now_ns)


def _show(state: EngineState, device_id: str, now: Judgement, at_ns: int) -> None:
    before = state.get(Shown, device_id)
    shown = (before or Shown(device_id=device_id)).followed_by(now.verdict, now.handling, at_ns)
    if shown != before:
        state.put(shown)


_REPEAT_NS = 60 * SECOND_NS


def notice(
    state: EngineState,
    device: Device,
    *,
    code: str,
    why: str,
    source: str,
    name: str = "",
    level: Level | None = None,
    count: int = 1,
    userspace: bool = False,
    evidence: Mapping[str, str] | None = None,
) -> bool:
    """Emit it, or count it towards the next one. False where too many different ones came at once."""
    at_ns = state.moment_ns
    before = state.get(Noticed, device.id, code)
    if before is not None and at_ns - before.told_ns < _REPEAT_NS:
        state.put(replace(before, untold=before.untold + count))
        return True
    if before is None and not _make_room(state):
        return False
    state.put(Noticed(device_id=device.id, code=code, told_ns=at_ns, source=source))
    emit(
        state,
        EventKind.NOTICE,
        device,
        code=code,
        name=name,
        condition_level=level,
        source=source,
        count=count + (before.untold if before else 0),
        userspace=userspace,
        why=why,
        evidence=evidence,
    )
    return True


def _make_room(state: EngineState) -> bool:
    """The oldest is forgotten, unless it was emitted within the minute."""
    if len(state.cells[Noticed]) < MAX_NOTICED:
        return True
    oldest: Noticed = next(iter(state.cells[Noticed].values()))
    if state.moment_ns - oldest.told_ns < _REPEAT_NS:
        return False
    state.drop(oldest)
    return True
