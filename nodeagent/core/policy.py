"""The only maker of actions: which fault asks for a reset, and what becomes of a proposal meanwhile.

A fault asks if a reset can end it, its level wants one now, and it is seen to be there: not injected, not the
application's, not one that only a replay or a reload of the tables brought up. How one reset goes on once it
is proposed is in ``resets``; who stands in its way in ``hindrances``.
"""

from collections.abc import Iterable

from nodeagent.core import hindrances, resets
from nodeagent.core.catalog import Mode
from nodeagent.core.model import Condition, Device, Kind, Level, Reset, ResetMode, ResetStage
from nodeagent.core.state import State
from nodeagent.core.telling import unobserved_reason
from nodeagent.core.verdict import RESET_LEVELS

_AT_ONCE = (Level.FREE_RESTART_NPU, Level.RESTART_NPU)


def review(state: State) -> bool:
    """Look again at every device of which anything has changed. True if that changed a reset."""
    changed = False
    while state.unreviewed:
        unreviewed, state.unreviewed = state.unreviewed, {}
        for reset in state.all(Reset):
            changed = _reconsider(state, reset) or changed
        for device in _of_their_groups(state, unreviewed):
            changed = _propose_for(state, device) or changed
    return changed


def _of_their_groups(state: State, device_ids: Iterable[str]) -> list[Device]:
    """The chips, and those that are reset with them: what stood in the way of one may have been another's."""
    if not state.lookup.settings.reset.is_on:
        return []
    found: dict[str, None] = {}
    for device_id in device_ids:
        device = state.get(Device, device_id)
        if device is not None and device.kind is Kind.CHIP and device.seen and not device.gone:
            found.update(dict.fromkeys(hindrances.group_of(state, device)))
    return [state.device(device_id) for device_id in found]


def _reconsider(state: State, reset: Reset) -> bool:
    """A proposal whose fault is gone, or that the configuration no longer wants, is withdrawn."""
    open_now = [each for each in reset.conditions if ("condition", each) in state.cells[Condition]]
    if reset.stage is ResetStage.ENDED:
        cooled_ns = (reset.ended_ns or 0) + state.lookup.settings.reset.cool_down_ns
        is_over = not open_now and state.moment_ns >= cooled_ns
        if is_over:
            state.drop(reset)
        return is_over
    if reset.stage in (ResetStage.RUNNING, ResetStage.VERIFYING):
        return False
    if not open_now and not reset.who:
        resets.refuse(state, reset, "the fault is gone")
    elif _mode(state, state.get(Device, reset.asker_id)) is ResetMode.OFF:
        resets.refuse(state, reset, "resets are switched off")
    elif reason := hindrances.barrier(state, reset.members):
        resets.refuse(state, reset, reason)
    else:
        return resets.look_again(state, reset)
    return True


def _mode(state: State, device: Device | None) -> ResetMode:
    vendor = "" if device is None else device.vendor
    return state.lookup.settings.reset.of_vendor(vendor)


def _propose_for(state: State, device: Device) -> bool:
    if _mode(state, device) is ResetMode.OFF or unobserved_reason(state, device) is not None:
        return False
    asking = [condition for condition in state.on(Condition, device.id) if _asks(state, condition)]
    if not asking:
        return False
    members = hindrances.group_of(state, device)
    if _is_covered(state, members, asking) or hindrances.barrier(state, members):
        return False
    return resets.propose(state, device, members, asking)


def _asks(state: State, condition: Condition) -> bool:
    if condition.level not in RESET_LEVELS:
        return False
    if condition.injected or condition.user_induced or not condition.affect_verdict:
        return False
    if condition.recovered_ns is not None or not state.lookup.facts(condition.code).clear_on.reset:
        return False
    return _wants_one_now(state, condition) and _is_live(state, condition)


def _wants_one_now(state: State, condition: Condition) -> bool:
    settings = state.lookup.settings
    if condition.level is Level.FREE_RESTART_NPU and settings.mode is Mode.GRACEFUL:
        members = hindrances.group_of(state, state.device(condition.device_id))
        return not any(hindrances.users(state, members, settings.reset))
    if condition.level in _AT_ONCE:
        return True
    return condition.phase >= len(state.lookup.phases[condition.level]) - 1


def _is_live(state: State, condition: Condition) -> bool:
    """Of a chip that is observed: shown as present, or heard of in this life. A reload shows nothing."""
    era = state.era
    if condition.boot_id != era.boot_id:
        return False
    if condition.present_ns is None and condition.last_ns < era.started_ns:
        return False
    return max(condition.last_ns, era.started_ns) >= era.catalog_ns


def _is_covered(state: State, members: Iterable[str], asking: list[Condition]) -> bool:
    """A reset that goes on covers all of its group; one that ended, only the faults that asked for it."""
    ended = (reset for reset in state.all(Reset) if reset.stage is ResetStage.ENDED)
    asked = {condition_id for reset in ended for condition_id in reset.conditions}
    return hindrances.covers(state, members) or asked.issuperset(condition.id for condition in asking)
