"""How one reset goes: proposed, held, announced, approved, checked again, done, verified, lifted.

    announced --> asking (mode ask) --> waiting --> running --> verifying --> ended
        any stage before running: refused, when its reason to be is gone

Each step is told as one of three event kinds (proposed, started, finished) about the device that asked, with
the action's id. A dry run takes the same steps up to the start, holds nothing, and does nothing.
"""

from dataclasses import replace

from nodeagent.core import clearing, hindrances, limits, signals
from nodeagent.core.catalog import ResetSettings
from nodeagent.core.model import (
    Action,
    ActionResult,
    ActionState,
    ActiveSet,
    Assertion,
    Charge,
    Condition,
    Device,
    EventKind,
    Hold,
    HoldKind,
    Reset,
    ResetMode,
    ResetStage,
    Signal,
)
from nodeagent.core.state import State
from nodeagent.core.telling import tell, unobserved_reason

OWNER = "nodeagent"
"""Of the holds of a pending reset; no person has this name."""

FIRST_STAGE = ResetStage.ANNOUNCED
"""Of every proposal."""

_MOST_ATTEMPTS = 2
_PENDING = (ResetStage.ANNOUNCED, ResetStage.ASKING, ResetStage.WAITING)


def propose(
    state: State,
    device: Device,
    members: tuple[str, ...],
    asking: list[Condition],
    who: str = "",
    reason: str = "",
) -> bool:
    """Announce it and hold the group; where a member has had all its resets, say that instead."""
    settings = state.lookup.settings.reset
    mode = settings.of_vendor(device.vendor)
    if mode is not ResetMode.DRY_RUN and (spent := hindrances.exhausted(state, members, settings)):
        return _tell_limit(state, device, spent, settings)
    if len(state.cells[Reset]) >= limits.MAX_RESETS:
        return False
    codes = tuple(dict.fromkeys(condition.code for condition in asking))
    reset = Reset(
        id=f"{device.id}/reset#{limits.next_ordinal(state, device.id, 'reset')}",
        asker_id=device.id,
        members=members,
        mode=mode,
        stage=ResetStage.ANNOUNCED,
        proposed_ns=state.moment_ns,
        due_ns=state.moment_ns + settings.announce_ns,
        conditions=tuple(condition.id for condition in asking),
        codes=codes,
        who=who,
        reason=reason,
        approved=bool(who),
    )
    state.put(reset)
    asked_by = f"{who}: {reason}" if who else ", ".join(codes)
    _tell(
        state, EventKind.ACTION_PROPOSED, reset, f"reset of {hindrances.names(state, members)} for {asked_by}"
    )
    _hold(state, reset)
    return True


def is_pending(reset: Reset) -> bool:
    """Whether nothing has been done yet."""
    return reset.stage in _PENDING


def is_running(state: State, action: Action) -> bool:
    """False where its time has run out already: a step may span more than its deadline."""
    reset = state.get(Reset, action.id)
    return reset is not None and reset.stage is ResetStage.RUNNING


def look_again(state: State, reset: Reset) -> bool:
    """Something changed while it waits: start it, or tell what now stands in its way."""
    return reset.stage is ResetStage.WAITING and _start_or_wait(state, reset)


def due(state: State, reset: Reset) -> None:
    """The time of its stage is over."""
    settings = state.lookup.settings.reset
    if reset.stage is ResetStage.ANNOUNCED:
        if reset.mode is ResetMode.ASK and not reset.approved:
            asking = replace(reset, stage=ResetStage.ASKING, due_ns=state.moment_ns + settings.approval_ns)
            state.put(asking)
            _tell(state, EventKind.ACTION_PROPOSED, asking, "it waits for an operator to approve it")
        else:
            _wait(state, reset)
    elif reset.stage is ResetStage.ASKING:
        refuse(state, reset, "nobody approved it in time")
    elif reset.stage is ResetStage.WAITING:
        if state.moment_ns < reset.proposed_ns + settings.validity_ns:
            _start_or_wait(state, reset)
        else:
            refuse(state, reset, "; ".join(("it could not be done in time", *reset.hindered)))
    elif reset.stage is ResetStage.RUNNING:
        _fail(state, reset, ActionState.TIMED_OUT, "no result came")
    elif reset.stage is ResetStage.VERIFYING:
        unwell = [device_id for device_id in reset.members if device_id not in reset.verified]
        _fail(
            state,
            reset,
            ActionState.FAILED,
            f"{hindrances.names(state, tuple(unwell))} did not show that it helped",
        )


def approve(state: State, reset: Reset, by: str) -> bool:
    """A person lets it go on."""
    if reset.approved or reset.mode is not ResetMode.ASK or reset.stage not in _PENDING:
        return False
    approved = replace(reset, approved=True)
    state.put(approved)
    _tell(state, EventKind.ACTION_PROPOSED, approved, f"approved by {by}")
    if reset.stage is ResetStage.ASKING:
        _wait(state, approved)
    return True


def refuse(state: State, reset: Reset, why: str) -> None:
    """It will not be done."""
    _end(state, reset, ActionState.REFUSED, why)


def polled(state: State, given: ActiveSet) -> bool:
    """A poll confirms that the fault is there before, and that it is gone after. True if that was news."""
    changed = False
    shown = {state.lookup.facts(active.code).key for active in given.codes}
    for reset in state.all(Reset) if given.complete else ():
        for device_id in reset.members:
            device = state.get(Device, device_id)
            if device is None or device.source != given.source:
                continue
            if state.names.get(given.device, given.device) == device_id:
                changed = _polled_member(state, reset, device_id, given, shown) or changed
    return changed


def _polled_member(state: State, reset: Reset, device_id: str, given: ActiveSet, shown: set[str]) -> bool:
    wanted = {state.lookup.facts(code).key for code in reset.codes}
    if reset.stage in _PENDING and not reset.confirmed and device_id == reset.asker_id:
        if given.begun_ns < max(reset.proposed_ns, state.era.started_ns):
            return False
        state.put(replace(reset, confirmed=True))
        return True
    if reset.stage is ResetStage.VERIFYING and device_id not in reset.verified:
        if given.begun_ns < (reset.ended_ns or 0) or wanted & shown:
            return False
        verified = replace(reset, verified=(*reset.verified, device_id))
        state.put(verified)
        if set(verified.verified) == set(reset.members):
            _succeed(state, verified)
        return True
    return False


def resulted(state: State, given: ActionResult) -> bool:
    """The shell says how it went. Only one that runs can have a result."""
    reset = state.get(Reset, given.action_id)
    if reset is None or reset.stage is not ResetStage.RUNNING:
        return False
    if given.state is ActionState.DONE:
        due_ns = state.moment_ns + state.lookup.settings.reset.verify_ns
        state.put(
            replace(reset, stage=ResetStage.VERIFYING, ended_ns=state.moment_ns, due_ns=due_ns, verified=())
        )
    elif given.state is ActionState.REFUSED:
        _end(state, reset, ActionState.REFUSED, given.reason)
    else:
        _fail(state, reset, given.state, given.reason)
    return True


def began_again(state: State) -> None:
    """After a start of the daemon: a fault must be seen anew before anything is done about it."""
    for reset in state.all(Reset):
        if reset.stage in _PENDING:
            state.put(replace(reset, confirmed=False))


# ---------------------------------------------------------------------- steps


def _wait(state: State, reset: Reset) -> None:
    due_ns = reset.proposed_ns + state.lookup.settings.reset.validity_ns
    waiting = replace(reset, stage=ResetStage.WAITING, due_ns=max(due_ns, state.moment_ns))
    state.put(waiting)
    _start_or_wait(state, waiting)


def _start_or_wait(state: State, reset: Reset) -> bool:
    settings = state.lookup.settings.reset
    cooled_ns = hindrances.cooled_ns(state, settings)
    if state.moment_ns < cooled_ns:
        after = replace(reset, due_ns=min(cooled_ns, reset.proposed_ns + settings.validity_ns))
        if after != reset:
            state.put(after)
        return after != reset
    found = hindrances.of_start(state, reset, settings)
    if not found:
        _start(state, reset, settings)
        return True
    if found == reset.hindered:
        return False
    waiting = replace(reset, hindered=found, due_ns=reset.proposed_ns + settings.validity_ns)
    state.put(waiting)
    _tell(state, EventKind.ACTION_PROPOSED, waiting, "it waits: " + "; ".join(found))
    return True


def _start(state: State, reset: Reset, settings: ResetSettings) -> None:
    at_ns = state.moment_ns
    started = replace(
        reset,
        stage=ResetStage.RUNNING,
        hindered=(),
        started_ns=at_ns,
        ended_ns=None,
        due_ns=at_ns + settings.run_ns,
    )
    state.put(started)
    _tell(state, EventKind.ACTION_STARTED, started, f"reset of {hindrances.names(state, reset.members)}")
    if reset.mode is ResetMode.DRY_RUN:
        _end(state, replace(started, ended_ns=at_ns), ActionState.DONE, "dry run: nothing was done")
        return
    for device_id in (*reset.members, state.node_id):
        _charge(state, device_id, settings)
    state.actions.append(
        Action(
            id=reset.id,
            kind="reset",
            devices=reset.members,
            reasons=reset.codes,
            deadline_ns=at_ns + settings.run_ns,
        )
    )


def _charge(state: State, device_id: str, settings: ResetSettings) -> None:
    before = state.get(Charge, device_id)
    since_ns = state.moment_ns - settings.limit_window_ns
    kept = tuple(at_ns for at_ns in before.resets_ns if at_ns >= since_ns) if before is not None else ()
    state.put(Charge(device_id=device_id, resets_ns=(*kept, state.moment_ns)))


def _succeed(state: State, reset: Reset) -> None:
    """Every member was read and is well: what a reset clears is over."""
    for device_id in reset.members:
        for condition in state.on(Condition, device_id):
            facts = state.lookup.facts(condition.code)
            if facts.clear_on.reset and condition.last_ns <= (reset.ended_ns or 0):
                clearing.close(state, condition, f"verified after {reset.id}")
    _end(state, reset, ActionState.DONE, "verified by a poll of every member")


def _fail(state: State, reset: Reset, how: ActionState, why: str) -> None:
    """Once more after the cool-down where every member answers; else those that did not verify are out."""
    answers = all(
        (device := state.get(Device, each)) is not None and unobserved_reason(state, device) is None
        for each in reset.members
    )
    settings = state.lookup.settings.reset
    exhausted = hindrances.exhausted(state, reset.members, settings)
    if reset.attempt < _MOST_ATTEMPTS and answers and not exhausted:
        at_ns = state.moment_ns
        again = replace(
            reset,
            stage=ResetStage.WAITING,
            attempt=reset.attempt + 1,
            confirmed=False,
            verified=(),
            ended_ns=at_ns,
            due_ns=at_ns + settings.cool_down_ns,
        )
        state.put(again)
        _tell(state, EventKind.ACTION_FINISHED, reset, f"{how}: {why}; once more after the cool-down")
        return
    for device_id in reset.members:
        if device_id not in reset.verified:
            _raise(state, device_id, "reset_failed", f"{reset.id} {how}: {why}")
    _end(state, replace(reset, ended_ns=state.moment_ns), how, why)


def _end(state: State, reset: Reset, how: ActionState, why: str) -> None:
    ended = replace(reset, stage=ResetStage.ENDED, due_ns=None, result=f"{how}: {why}")
    state.put(ended)
    _tell(state, EventKind.ACTION_FINISHED, ended, f"{how}: {why}")
    for device_id in reset.members:
        for hold in state.on(Hold, device_id):
            if hold.kind is HoldKind.RESET_PENDING and hold.id.endswith(f"!{reset.id}"):
                clearing.lift(state, hold, f"{reset.id} has ended")


def _hold(state: State, reset: Reset) -> None:
    if reset.mode is ResetMode.DRY_RUN:
        return
    for device_id in reset.members:
        hold = Hold(
            id=f"{device_id}/hold:{OWNER}!{reset.id}",
            device_id=device_id,
            owner=OWNER,
            reason=f"reset pending: {reset.id}",
            since_ns=state.moment_ns,
            kind=HoldKind.RESET_PENDING,
        )
        state.put(hold)
        tell(state, EventKind.ISOLATED, state.device(device_id), condition_id=hold.id, why=hold.reason)


def _tell_limit(state: State, device: Device, spent: str, settings: ResetSettings) -> bool:
    code = "reset_limit_reached"
    if state.condition(device.id, state.lookup.facts(code).key) is not None:
        return False
    _raise(state, device.id, code, hindrances.limit_words(state, spent, settings))
    return True


def _raise(state: State, device_id: str, code: str, why: str) -> None:
    """A fault of the agent's own finding, as if it had been signalled."""
    if state.get(Device, device_id) is not None:
        signals.signalled(
            state,
            Signal(
                source="agent", device=device_id, code=code, assertion=Assertion.ONCE, evidence={"why": why}
            ),
        )


def _tell(state: State, kind: EventKind, reset: Reset, why: str) -> None:
    device = state.get(Device, reset.asker_id) or state.device(state.node_id)
    evidence = {
        "mode": str(reset.mode),
        "devices": hindrances.names(state, reset.members),
        "attempt": str(reset.attempt),
        **{
            name: f"{(at_ns - reset.proposed_ns) / 1e9:.3f}"
            for name, at_ns in (("started_after_s", reset.started_ns), ("ended_after_s", reset.ended_ns))
            if at_ns is not None
        },
    }
    code = reset.codes[0] if reset.codes else ""
    tell(state, kind, device, code=code, condition_id=reset.id, source="agent", why=why, evidence=evidence)
