"""A reset before it starts: proposed, held, announced, approved, and waiting until nothing blocks it.

A dry run takes the same steps and holds nothing. Which stage follows which, and what is done
from the start on, is in ``resets``.
"""

from dataclasses import replace

from nodeagent.core.catalog.settings import SECOND_NS, ResetSettings
from nodeagent.core.judge.events import emit
from nodeagent.core.machines import reset_blockers, reset_refusal, resets
from nodeagent.core.machines.resets import ResetTrigger
from nodeagent.core.model import (
    ActiveSet,
    Condition,
    Device,
    EventKind,
    Hold,
    HoldKind,
    Operator,
    Reset,
    ResetMode,
    ResetStage,
)
from nodeagent.core.state import limits, occupancy
from nodeagent.core.state.state import EngineState

OWNER = "nodeagent"
"""The owner of the holds of a pending reset; no person has this name."""

SETTLES_NS = 10 * SECOND_NS
"""How long chips may take to be observed one after the other before it is reported that they are not."""

_OF_RESET = f"/hold:{OWNER}!"


def propose(state: EngineState, device: Device, members: tuple[str, ...], asking: list[Condition]) -> bool:
    """Announce it and hold the group; where a member has had all its resets, report that instead."""
    settings = state.lookup.settings.reset
    mode = settings.of_vendor(device.vendor)
    if mode is not ResetMode.DRY_RUN and (spent := reset_blockers.exhausted(state, members, settings)):
        return _emit_limit(state, device, spent, settings)
    if len(state.cells[Reset]) >= limits.MAX_RESETS:
        return False
    codes = tuple(dict.fromkeys(condition.code for condition in asking))
    reset = replace(
        _first(state, device, members, mode),
        conditions=tuple(condition.id for condition in asking),
        codes=codes,
    )
    _announce(state, reset, ", ".join(codes))
    return True


def ordered(state: EngineState, device: Device, given: Operator) -> Reset:
    """A person's order, which nothing refuses: it is approved by that, and dry runs make way for it."""
    members = reset_blockers.group_of(state, device)
    mode = state.lookup.settings.reset.of_vendor(device.vendor)
    once = mode not in reset_refusal.DONE
    reset = replace(
        _first(state, device, members, ResetMode.ON if once else mode),
        who=given.who,
        reason=given.reason,
        approved=True,
        once=once,
    )
    by = f"{given.who}: {given.reason}"
    _announce(state, reset, by)
    for other in reset_blockers.in_progress(state, members):
        if other.is_dry_run:
            withdraw(state, other, f"{reset.id} takes its place, ordered by {by}")
    return reset


def _first(state: EngineState, device: Device, members: tuple[str, ...], mode: ResetMode) -> Reset:
    return Reset(
        id=limits.next_id(state, Reset, device.id, "reset"),
        asker_id=device.id,
        members=members,
        mode=mode,
        stage=resets.FIRST_STAGE,
        proposed_ns=state.moment_ns,
        due_ns=state.moment_ns + state.lookup.settings.reset.announce_ns,
    )


def _announce(state: EngineState, reset: Reset, asked_by: str) -> None:
    state.put(reset)
    why = f"reset of {reset_blockers.names(state, reset.members)} for {asked_by}"
    resets.emit_step(state, EventKind.ACTION_PROPOSED, reset, why)
    _hold(state, reset)


def is_of_reset(hold_id: str) -> bool:
    """Whether a hold of that id waits for a reset."""
    return _OF_RESET in hold_id


def reset_of(hold_id: str) -> str:
    """The id of the reset that a hold waits for."""
    return hold_id.partition(_OF_RESET)[2]


def look_again(state: EngineState, reset: Reset) -> bool:
    """Something changed while it waits: start it, or report what blocks it now."""
    if reset.stage is ResetStage.ANNOUNCED and _is_awaited_by_all(state, reset):
        _wait(state, reset, ResetTrigger.ANNOUNCED)
        return True
    return reset.stage is ResetStage.WAITING and _start_or_wait(state, reset)


def _is_awaited_by_all(state: EngineState, reset: Reset) -> bool:
    """Whether nothing needs the time that it is announced: only jobs that have stopped use the group."""
    if reset.mode is not ResetMode.ON and not (reset.mode is ResetMode.ASK and reset.approved):
        return False
    using = [job for chip_id in reset.members for job in occupancy.supervised_on(state, chip_id)]
    are_stopped = bool(using) and all(map(occupancy.is_out_of_the_way, using))
    return are_stopped and not any(reset_blockers.users(state, reset.members, state.lookup.settings.reset))


def due(state: EngineState, reset: Reset) -> None:
    """The time of its stage is over."""
    settings = state.lookup.settings.reset
    if reset.stage is ResetStage.ANNOUNCED:
        if reset.mode is ResetMode.ASK and not reset.approved:
            due_ns = state.moment_ns + settings.approval_ns
            asking = resets.advance(state, reset, ResetTrigger.NEEDS_APPROVAL, due_ns=due_ns)
            if asking is not None:
                why = "it waits for an operator to approve it"
                resets.emit_step(state, EventKind.ACTION_PROPOSED, asking, why)
        else:
            _wait(state, reset, ResetTrigger.ANNOUNCED)
    elif reset.stage is ResetStage.ASKING:
        refuse(state, reset, "it was not approved in time")
    elif reset.stage is ResetStage.WAITING:
        if state.moment_ns < _valid_until_ns(reset, settings):
            _start_or_wait(state, reset)
        else:
            _refuse_in_vain(state, reset)
    else:
        resets.due(state, reset)


def approve(state: EngineState, reset: Reset, by: str) -> bool:
    """A person approves it."""
    if reset.approved or reset.mode is not ResetMode.ASK or not reset.is_pending:
        return False
    approved = replace(reset, approved=True)
    state.put(approved)
    resets.emit_step(state, EventKind.ACTION_PROPOSED, approved, f"approved by {by}")
    if approved.stage is ResetStage.ASKING:
        _wait(state, approved, ResetTrigger.APPROVED)
    return True


def refuse(state: EngineState, reset: Reset, why: str) -> None:
    """It will not be done, whatever blocked it."""
    resets.call_off(state, reset, ResetTrigger.CALLED_OFF, why)


def withdraw(state: EngineState, reset: Reset, why: str) -> None:
    """It will not be done as it was proposed: the faults that asked for it may ask again."""
    resets.call_off(state, reset, ResetTrigger.WITHDRAWN, why)


def polled(state: EngineState, given: ActiveSet) -> bool:
    """A poll confirms a proposal before, and a reset after. True if that was news.

    One that is not complete proves only what it shows: that is enough before a reset, never after it.
    """
    changed = False
    for reset in state.all(Reset):
        for device_id in reset.members:
            device = state.get(Device, device_id)
            if device is None or device.source != given.source:
                continue
            if state.names.get(given.device, given.device) != device_id:
                continue
            if reset.stage is ResetStage.VERIFYING and given.complete:
                changed = resets.verified(state, reset, device_id, given) or changed
            elif reset.is_pending and device_id == reset.asker_id and _is_conclusive(state, reset, given):
                changed = _confirmed(state, reset, given) or changed
    return changed


def _is_conclusive(state: EngineState, reset: Reset, given: ActiveSet) -> bool:
    """Whether a poll of the device that asked shows if a fault that it asked for is there."""
    if given.complete:
        return True
    keys = (state.lookup.facts(active.code).key for active in given.codes)
    shown = (state.condition(reset.asker_id, key) for key in keys)
    return any(condition is not None and condition.id in reset.conditions for condition in shown)


def _confirmed(state: EngineState, reset: Reset, given: ActiveSet) -> bool:
    """The asker was read since: whether its fault is there is then known."""
    since_ns = max(reset.proposed_ns, reset.ended_ns or 0, state.era.started_ns)
    if reset.confirmed or given.begun_ns < since_ns or resets.asks_in_vain(reset, given):
        return False
    state.put(replace(reset, confirmed=True))
    return True


def began_again(state: EngineState) -> None:
    """After a start of the daemon: a fault must be seen again before anything is done about it."""
    for reset in state.all(Reset):
        if reset.is_pending:
            state.put(replace(reset, confirmed=False))
        else:
            resets.began_again(state, reset)


# ---------------------------------------------------------------------- steps


def _refuse_in_vain(state: EngineState, reset: Reset) -> None:
    """What blocked it to the last is kept: once that has gone, the fault may ask again."""
    blocked_by = reset.hindered or ("the cool-down after the last reset was not over",)
    why = "; ".join(("it could not be done in time", *blocked_by))
    resets.call_off(state, replace(reset, hindered=blocked_by), ResetTrigger.EXPIRED, why)


def _valid_until_ns(reset: Reset, settings: ResetSettings) -> int:
    """A second attempt has as long as the first."""
    since_ns = reset.proposed_ns if reset.ended_ns is None else reset.ended_ns
    return since_ns + settings.validity_ns


def _wait(state: EngineState, reset: Reset, happened: ResetTrigger) -> None:
    due_ns = max(_valid_until_ns(reset, state.lookup.settings.reset), state.moment_ns)
    waiting = resets.advance(state, reset, happened, due_ns=due_ns)
    if waiting is not None:
        _start_or_wait(state, waiting)


def _start_or_wait(state: EngineState, reset: Reset) -> bool:
    settings = state.lookup.settings.reset
    cooled_ns = reset_blockers.cooled_ns(state, settings)
    if state.moment_ns < cooled_ns:
        after = replace(reset, due_ns=min(cooled_ns, _valid_until_ns(reset, settings)))
        if after != reset:
            state.put(after)
        return after != reset
    found = reset_blockers.of_start(state, reset, settings)
    if not found:
        resets.start(state, reset, settings)
        return True
    waiting = _waiting(state, replace(reset, hindered=found), _valid_until_ns(reset, settings))
    if waiting == reset:
        return False
    state.put(waiting)
    if waiting.told != reset.told:
        resets.emit_step(state, EventKind.ACTION_PROPOSED, waiting, "it waits: " + "; ".join(found))
    return True


def _waiting(state: EngineState, reset: Reset, valid_until_ns: int) -> Reset:
    """What blocks it is reported as it changes. While its chips come back one after the other, as after a
    start or a quiesce, it is reported once that is over, or has taken long.
    """
    if reset.told in ((), reset.hindered) or reset_blockers.are_known(state, reset.members):
        return replace(reset, told=reset.hindered, unsettled_ns=None, due_ns=valid_until_ns)
    since_ns = state.moment_ns if reset.unsettled_ns is None else reset.unsettled_ns
    told_at_ns = since_ns + SETTLES_NS
    if state.moment_ns >= told_at_ns:
        return replace(reset, told=reset.hindered, unsettled_ns=since_ns, due_ns=valid_until_ns)
    return replace(reset, unsettled_ns=since_ns, due_ns=min(told_at_ns, valid_until_ns))


def _hold(state: EngineState, reset: Reset) -> None:
    if reset.is_dry_run:
        return
    for device_id in reset.members:
        hold = Hold(
            id=f"{device_id}{_OF_RESET}{reset.id}",
            device_id=device_id,
            owner=OWNER,
            reason=f"reset pending: {reset_blockers.names(state, reset.members)}",
            since_ns=state.moment_ns,
            kind=HoldKind.RESET_PENDING,
        )
        state.put(hold)
        emit(state, EventKind.ISOLATED, state.device(device_id), condition_id=hold.id, why=hold.reason)


def _emit_limit(state: EngineState, device: Device, spent: str, settings: ResetSettings) -> bool:
    code = "reset_limit_reached"
    if state.condition(device.id, state.lookup.facts(code).key) is not None:
        return False
    resets.raise_own(state, device.id, code, reset_blockers.limit_text(state, spent, settings))
    return True
