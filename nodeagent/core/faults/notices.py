"""Notices: events that open nothing. One kind is emitted at most once a minute, with its count."""

from collections.abc import Mapping
from dataclasses import replace

from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import Device, EventKind, Level, Noticed
from nodeagent.core.state.limits import MAX_NOTICED
from nodeagent.core.state.state import State
from nodeagent.core.verdicts.emit import emit

REPEAT_NS = 60 * SECOND_NS


def notice(
    state: State,
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
    if before is not None and at_ns - before.told_ns < REPEAT_NS:
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


def _make_room(state: State) -> bool:
    """The oldest is forgotten, unless it was emitted within the minute."""
    if len(state.cells[Noticed]) < MAX_NOTICED:
        return True
    oldest: Noticed = next(iter(state.cells[Noticed].values()))
    if state.moment_ns - oldest.told_ns < REPEAT_NS:
        return False
    state.drop(oldest)
    return True
