"""The only maker of actions: which fault asks for a reset, and what becomes of a proposal meanwhile.

A fault asks if a reset can end it, its level wants one now, and it is seen to be there: not injected, not the
application's, not one that only a replay or a reload of the tables brought up. How one reset moves once it
is proposed is in ``resets``; what blocks it in ``reset_blockers``.
"""

from collections.abc import Iterable
from dataclasses import replace

from nodeagent.core.catalog.settings import Mode
from nodeagent.core.judge import recovery_action
from nodeagent.core.judge.observed import unobserved_reason
from nodeagent.core.machines import reset_blockers, reset_proposals
from nodeagent.core.model import AskAgain, Belief, Condition, Device, Kind, Level, Reset, ResetMode
from nodeagent.core.state.state import EngineState

_AT_ONCE = (Level.FREE_RESTART_NPU, Level.RESTART_NPU)


def review(state: EngineState) -> bool:
    """Look again at every device of which anything has changed. True if that changed a reset."""
    changed = False
    while state.unreviewed:
        unreviewed, state.unreviewed = state.unreviewed, {}
        for reset in state.all(Reset):
            changed = _reconsider(state, reset) or changed
        for device in _of_their_groups(state, unreviewed):
            changed = _propose_for(state, device) or changed
    return changed


def _of_their_groups(state: EngineState, device_ids: Iterable[str]) -> list[Device]:
    """The chips, and those that are reset with them: what blocked one may have been another's."""
    if not state.lookup.settings.reset.is_on:
        return []
    found: dict[str, None] = {}
    for device_id in device_ids:
        if device_id in found:
            continue  # a group is the same for each of its members
        device = state.get(Device, device_id)
        if device is not None and device.kind is Kind.CHIP and device.seen and not device.gone:
            found.update(dict.fromkeys(reset_blockers.group_of(state, device)))
    return [state.device(device_id) for device_id in found]


def _reconsider(state: EngineState, reset: Reset) -> bool:
    """A proposal whose fault is gone, or that the configuration no longer wants, is withdrawn."""
    if reset.has_ended:
        return _forget(state, reset)
    if reset.is_under_way:
        return False
    if reason := _why_withdrawn(state, reset):
        reset_proposals.withdraw(state, reset, reason)
        return True
    return reset_proposals.look_again(state, reset)


def _forget(state: EngineState, reset: Reset) -> bool:
    """Forget one that has ended, once it has cooled down and keeps no open fault from asking."""
    keeps = () if reset.ask_again is AskAgain.AT_ONCE else reset.conditions
    if any(("condition", each) in state.cells[Condition] for each in keeps):
        return False
    if state.moment_ns < (reset.ended_ns or 0) + state.lookup.settings.reset.cool_down_ns:
        return False
    state.drop(reset)
    return True


def _why_withdrawn(state: EngineState, reset: Reset) -> str:
    asker = state.get(Device, reset.asker_id)
    mode = _mode(state, asker)
    if not reset.who and not reset_blockers.asking_conditions(state, reset):
        return "the fault is gone"
    if forbidden := state.lookup.settings.reset.forbidden:
        return f"resets are forbidden: {forbidden}"
    if mode is ResetMode.OFF and not reset.once:
        return "resets are switched off"
    if mode is not reset.mode and not reset.once:
        return f"the mode of resets is {mode} now"
    if reason := reset_blockers.excludes(state, reset.members):
        return reason
    if asker is not None and set(reset_blockers.group_of(state, asker)) != set(reset.members):
        return "other devices are reset together with it now"
    return ""


def _mode(state: EngineState, device: Device | None) -> ResetMode:
    vendor = "" if device is None else device.vendor
    return state.lookup.settings.reset.of_vendor(vendor)


def _propose_for(state: EngineState, device: Device) -> bool:
    conditions = state.on(Condition, device.id)
    if not conditions or _mode(state, device) is ResetMode.OFF:
        return False
    if unobserved_reason(state, device) is not None:
        return False
    asking = [condition for condition in conditions if asks(state, condition)]
    if not asking:
        return False
    members = reset_blockers.group_of(state, device)
    if _is_covered(state, members, asking, _mode(state, device)) or reset_blockers.excludes(state, members):
        return False
    if not reset_proposals.propose(state, device, members, asking):
        return False
    _forget_in_vain(state, asking)
    return True


def asks(state: EngineState, condition: Condition) -> bool:
    """A reload shows nothing: the fault must have been reported, or read, since."""
    era = state.era
    if not reset_blockers.wants(state, condition) or not reset_blockers.is_live(era, condition.presence):
        return False
    is_heard = condition.presence.heard_ns > era.catalog_ns or era.started_ns >= era.catalog_ns
    return is_heard and _wants_one_now(state, condition)


def is_awaited(state: EngineState, chip: Device) -> bool:
    """Whether a reset of it is to be expected that is not proposed yet: its fault has still to be seen, or to
    be confirmed by its driver.
    """
    if _mode(state, chip) is not ResetMode.ON or chip.kind is not Kind.CHIP:
        return False
    expected = [each for each in state.on(Condition, chip.id) if _may_ask(state, each)]
    members = reset_blockers.group_of(state, chip)
    if not expected or reset_blockers.excludes(state, members):
        return False
    spent = reset_blockers.exhausted(state, members, state.lookup.settings.reset)
    return not spent and not _is_covered(state, members, expected, ResetMode.ON)


def _may_ask(state: EngineState, condition: Condition) -> bool:
    """As soon as it is seen, and its driver has reported the same; not one that might have asked before."""
    if condition.presence.recovered_ns is not None or waits_for_idle(state, condition):
        return False
    believed = condition
    if condition.backing.belief is Belief.ALONE:
        believed = replace(condition, backing=replace(condition.backing, belief=Belief.OWN))
    is_observed = unobserved_reason(state, state.device(condition.device_id)) is None
    might_ask = is_observed and asks(state, condition)
    return not might_ask and reset_blockers.wants(state, believed) and _wants_one_now(state, condition)


def waits_for_idle(state: EngineState, condition: Condition) -> bool:
    """Whether work goes on with it, and the reset waits until no process uses the chip."""
    if recovery_action.waits_for_idle(state, condition):
        return True
    is_graceful = state.lookup_on(condition.device_id).settings.mode is Mode.GRACEFUL
    return is_graceful and condition.level is Level.FREE_RESTART_NPU


def _wants_one_now(state: EngineState, condition: Condition) -> bool:
    lookup = state.lookup_on(condition.device_id)
    if waits_for_idle(state, condition):
        members = reset_blockers.group_of(state, state.device(condition.device_id))
        return not any(reset_blockers.users(state, members, lookup.settings.reset))
    if condition.level in _AT_ONCE:
        return True
    return condition.grade.phase >= len(lookup.phases[condition.level]) - 1


def _is_covered(
    state: EngineState, members: tuple[str, ...], asking: list[Condition], mode: ResetMode
) -> bool:
    """A reset in progress covers all of its group; one that ended, only the faults that asked for it, for as
    long as they may not ask again. What was done on paper covers nothing once resets are done.
    """
    if reset_blockers.in_progress(state, members):
        return True
    ended = (reset for reset in state.all(Reset) if reset.has_ended)
    counting = (reset for reset in ended if reset.mode in (mode, ResetMode.ON, ResetMode.ASK))
    final = (reset for reset in counting if not _may_ask_by_now(state, reset, members))
    asked = {condition_id for reset in final for condition_id in reset.conditions}
    return asked.issuperset(condition.id for condition in asking)


def _may_ask_by_now(state: EngineState, reset: Reset, members: tuple[str, ...]) -> bool:
    """Where it waited in vain: only if its fault is shown to this day, and what it waited for has gone."""
    if reset.ask_again is not AskAgain.ONCE_UNBLOCKED:
        return reset.ask_again is AskAgain.AT_ONCE
    if not any(each.presence.is_shown for each in reset_blockers.asking_conditions(state, reset)):
        return False
    again = replace(reset, members=members, confirmed=True)
    return not reset_blockers.of_start(state, again, state.lookup.settings.reset)


def _forget_in_vain(state: EngineState, asking: list[Condition]) -> None:
    """What waited in vain for these faults has given way to a new proposal."""
    ids = {condition.id for condition in asking}
    for reset in state.all(Reset):
        if reset.ask_again is AskAgain.ONCE_UNBLOCKED and ids.issuperset(reset.conditions):
            state.drop(reset)
