"""A condition: the level that is in force, how it ends, and what makes way where a bound of ``limits`` is
reached.

The level is that of the row, or what rules make of it; a change of what it follows from is put by
``relevel``. ``end`` ends one condition alone; what went with it and is still there is handled in
``ending.close``. Where a bound is reached the milder makes way for the stricter: a thousand notes on a chip
must not hide the fault that breaks it, and what is injected, or is on a chip that only kernel lines name,
hides nothing real. What makes way is closed, and its event gives the reason.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from nodeagent.core.catalog.levels import PRECEDENCE, milder
from nodeagent.core.judge.events import emit
from nodeagent.core.model import NODE, Belief, Condition, Device, EventKind, Level
from nodeagent.core.rules import kinds
from nodeagent.core.state import limits
from nodeagent.core.state.state import EngineState


def level_in_force(state: EngineState, condition: Condition) -> Level:
    """The row's level, or that of its relations, or the rule's once the time-out was reached, if stricter; of
    what is disregarded no more than that it is reported.
    """
    level = kinds.level(state.lookup.facts(condition.code), condition.grade)
    disregarded = condition.backing.belief is Belief.DISREGARDED
    return milder(level, Level.SUB_HEALTH) if disregarded else level


def relevel(state: EngineState, before: Condition, after: Condition, why: str) -> Condition:
    """Put ``after`` with the level that is now in force, and emit an event where it changed."""
    level = level_in_force(state, after)
    if level == before.level:
        state.put(after)
        return after
    grade = replace(after.grade, level=level, level_since_ns=state.moment_ns, phase=0)
    after = replace(after, grade=grade)
    state.put(after)
    text = f"{why}: {before.level} -> {level}"
    emit(state, EventKind.LEVEL_CHANGED, state.device(after.device_id), about=after, why=text)
    return after


def end(state: EngineState, condition: Condition, why: str, *, goes_on: bool = False) -> None:
    """What went with it is left to the next poll: a reload raises nothing, nor does what makes way. What
    ``goes_on`` as part of another fault is still there for the rule that raised it.
    """
    if has_ended(state, condition):
        return
    state.drop(condition)
    kinds.ended(state, condition, goes_on=goes_on)
    emit(state, EventKind.CLEARED, state.device(condition.device_id), about=condition, why=why)
    kinds.recovered(state, condition, state.moment_ns)


def has_ended(state: EngineState, condition: Condition) -> bool:
    """Where many end together, what one of them hid may have needed the place of another."""
    return state.get(Condition, condition.id) is None


def make_room(
    state: EngineState,
    device: Device | None,
    level: Level,
    injected: bool,
    leaving_id: str = "",
    *,
    is_reported: bool = False,
) -> bool:
    """Whether there is room for it by now. ``device`` None: it would be a new one. ``leaving_id`` is still
    there, and about to close. ``is_reported``: by another system.
    """
    if device is None and not limits.room_for_device(state):
        return False
    if injected and _injected(state) >= limits.MAX_INJECTED:
        return False
    worth = (not injected, PRECEDENCE[level], device is not None and device.seen, not is_reported)
    if device is not None and is_reported:
        reported = _reported(state, device)
        if len(reported) >= limits.MAX_REPORTED_ON_DEVICE and not _close_milder(state, reported, worth):
            return False
    on_device = _staying(state.on(Condition, device.id), leaving_id) if device is not None else []
    if len(on_device) >= limits.MAX_CONDITIONS_ON_DEVICE and not _close_milder(state, on_device, worth):
        return False
    if len(state.cells[Condition]) - bool(leaving_id) < limits.MAX_CONDITIONS:
        return True
    return _close_milder(state, _staying(state.cells[Condition].values(), leaving_id), worth)


def room_for_reports(state: EngineState, arriving: Mapping[str, Sequence[Level]]) -> str:
    """Whether all has room that another system reports, levels by the id of the device: "", or the name of
    a device that has none. It makes none. Where they differ in level there must be room for so many of the
    mildest, so that none of them makes way for another.
    """
    for device_id, levels in arriving.items():
        device = state.get(Device, device_id)
        if device is None:  # a part that becomes known by this: nothing is open on it
            continue
        worth = (True, min(PRECEDENCE[level] for level in levels), device.seen, False)
        on_device = state.on(Condition, device_id)
        bounds = (
            (_reported(state, device), limits.MAX_REPORTED_ON_DEVICE),
            (on_device, limits.MAX_CONDITIONS_ON_DEVICE),
        )
        if not all(_fit(state, len(levels), among, most, worth) for among, most in bounds):
            return device.name
    total = sum(map(len, arriving.values()))
    if len(state.cells[Condition]) + total <= limits.MAX_CONDITIONS:
        return ""
    mildest = min(PRECEDENCE[level] for levels in arriving.values() for level in levels)
    among = state.all(Condition)
    return "" if _fit(state, total, among, limits.MAX_CONDITIONS, (True, mildest, False, False)) else NODE


def _fit(state: EngineState, count: int, among: Sequence[Condition], most: int, worth: limits.Worth) -> bool:
    lacking = len(among) + count - most
    return lacking <= 0 or sum(limits.worth(state, each) < worth for each in among) >= lacking


def _reported(state: EngineState, device: Device) -> list[Condition]:
    return [condition for condition in state.on(Condition, device.id) if condition.origin.report is not None]


def _staying(conditions: Iterable[Condition], leaving_id: str) -> list[Condition]:
    return [condition for condition in conditions if condition.id != leaving_id]


def _injected(state: EngineState) -> int:
    return sum(condition.origin.injected for condition in state.cells[Condition].values())


def _close_milder(state: EngineState, among: Iterable[Condition], worth: limits.Worth) -> bool:
    mildest = limits.mildest(state, among, worth)
    if mildest is not None:
        end(state, mildest, limits.MADE_WAY)
        state.overflow = f"{mildest.code} made way for a worse fault"
    return mildest is not None
