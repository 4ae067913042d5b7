"""Where a bound of ``limits`` is reached: the milder makes way for the stricter, never the other way.

A thousand notes on a chip must not hide the fault that breaks it; what is injected, or is of a chip that
only lines have named, hides nothing that is real. What makes way is closed, and its event says so.
"""

from collections.abc import Iterable
from typing import TypeVar

from nodeagent.core.faults import condition_end
from nodeagent.core.model import Condition, Device, Level, Promotion
from nodeagent.core.rules import promotions
from nodeagent.core.state import limits
from nodeagent.core.state.state import State
from nodeagent.core.verdicts.judge import PRECEDENCE

Ranked = TypeVar("Ranked", Condition, Promotion)
Worth = tuple[bool, int, bool]
"""Real, how strict, and of a device that a driver lists: of two that are compared, the greater stays."""

WHY = "it made way for a worse fault: there are too many"


def for_condition(
    state: State, device: Device | None, level: Level, injected: bool, leaving_id: str = ""
) -> bool:
    """Whether there is room for it by now. ``device`` None: it would be a new one. ``leaving_id`` is still
    there, and about to close.
    """
    if device is None and not limits.room_for_device(state):
        return False
    if injected and _injected(state) >= limits.MAX_INJECTED:
        return False
    worth = (not injected, PRECEDENCE[level], device is not None and device.seen)
    on_device = _staying(state.on(Condition, device.id), leaving_id) if device is not None else []
    if len(on_device) >= limits.MAX_CONDITIONS_ON_DEVICE and not _close_milder(state, on_device, worth):
        return False
    if len(state.cells[Condition]) - bool(leaving_id) < limits.MAX_CONDITIONS:
        return True
    return _close_milder(state, _staying(state.cells[Condition].values(), leaving_id), worth)


def for_promotion(state: State, device: Device, level: Level) -> bool:
    """As for a condition."""
    if limits.room_for_promotion(state):
        return True
    mildest = _mildest(state, state.all(Promotion), (True, PRECEDENCE[level], device.seen))
    if mildest is not None:
        promotions.release(state, mildest, WHY)
    return mildest is not None


def _staying(conditions: Iterable[Condition], leaving_id: str) -> list[Condition]:
    return [condition for condition in conditions if condition.id != leaving_id]


def _injected(state: State) -> int:
    return sum(condition.injected for condition in state.cells[Condition].values())


def _close_milder(state: State, among: Iterable[Condition], worth: Worth) -> bool:
    mildest = _mildest(state, among, worth)
    if mildest is not None:
        condition_end.end(state, mildest, WHY)
        state.overflow = f"{mildest.code} made way for a worse fault"
    return mildest is not None


def _mildest(state: State, among: Iterable[Ranked], worth: Worth) -> Ranked | None:
    """The one of least worth, of several the one not reported for longest; None where none is worth less."""
    found = min(among, key=lambda cell: (_worth(state, cell), _heard_ns(cell)))
    return found if _worth(state, found) < worth else None


def _worth(state: State, cell: Condition | Promotion) -> Worth:
    is_real = not (isinstance(cell, Condition) and cell.injected)
    return is_real, PRECEDENCE[cell.level], state.device(cell.device_id).seen


def _heard_ns(cell: Condition | Promotion) -> int:
    return cell.heard_ns if isinstance(cell, Condition) else cell.fired_ns
