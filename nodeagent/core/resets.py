"""A reset from its start on: done, verified by polls, once more where it did not help, and ended.

    ... waiting --> running --> verifying --> ended

Each step is told as one of three event kinds (proposed, started, finished) about the device that asked, with
the action's id. A dry run ends as it starts, and nothing is done. What comes before is in ``proposals``.
"""

from dataclasses import replace

from nodeagent.core import clearing, grounds, hindrances, registered, signals
from nodeagent.core.catalog import ResetSettings
from nodeagent.core.codes import root
from nodeagent.core.model import (
    NODE,
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
    ResetsRecorded,
    ResetStage,
    Signal,
)
from nodeagent.core.state import State
from nodeagent.core.telling import tell

_MOST_ATTEMPTS = 2


def start(state: State, reset: Reset, settings: ResetSettings) -> None:
    """Nothing stands in its way any more: count it, and hand it to the shell."""
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
    tell_step(state, EventKind.ACTION_STARTED, started, f"reset of {hindrances.names(state, reset.members)}")
    if reset.mode is ResetMode.DRY_RUN:
        end(state, replace(started, ended_ns=at_ns), ActionState.DONE, "dry run: nothing was done")
        return
    _charge(state, (*reset.members, state.node_id), settings)
    state.actions.append(
        Action(
            id=reset.id,
            kind="reset",
            attempt=reset.attempt,
            devices=reset.members,
            reasons=reset.codes,
            deadline_ns=at_ns + settings.run_ns,
            holders=registered.holders(state, reset, settings),
        )
    )


def is_running(state: State, action: Action) -> bool:
    """False where its time has run out already: a step may span more than its deadline."""
    reset = state.get(Reset, action.id)
    return reset is not None and (reset.stage, reset.attempt) == (ResetStage.RUNNING, action.attempt)


def due(state: State, reset: Reset) -> None:
    """The time for its result, or for its verification, is over."""
    if reset.stage is ResetStage.RUNNING:
        _recharge(state, reset)
        _fail(state, reset, ActionState.TIMED_OUT, "no result came")
    elif reset.stage is ResetStage.VERIFYING:
        unwell = tuple(device_id for device_id in reset.members if device_id not in reset.verified)
        why = f"{hindrances.names(state, unwell)} did not show that it helped"
        _fail(state, reset, ActionState.FAILED, why)


def resulted(state: State, given: ActionResult) -> bool:
    """The shell says how it went. Only an attempt that runs can have a result; what comes late has none."""
    reset = state.get(Reset, given.action_id)
    if reset is None or reset.stage is not ResetStage.RUNNING or given.attempt not in (0, reset.attempt):
        return False
    _recharge(state, reset, counts=given.state is not ActionState.REFUSED)
    if given.state is ActionState.DONE:
        due_ns = state.moment_ns + state.lookup.settings.reset.verify_ns
        state.put(
            replace(
                reset,
                stage=ResetStage.VERIFYING,
                ended_ns=state.moment_ns,
                due_ns=due_ns,
                verified=(),
                report=given.reason,
            )
        )
    elif given.state is ActionState.REFUSED:
        refuse(state, _with_what_came(state, reset), given.reason)
    else:
        _fail(state, reset, given.state, given.reason)
    return True


def asks_in_vain(reset: Reset, given: ActiveSet) -> bool:
    """Whether the poll could not ask for a code that the reset is for."""
    return not {root(code) for code in reset.codes}.isdisjoint(map(root, given.unread))


def verified(state: State, reset: Reset, device_id: str, given: ActiveSet) -> bool:
    """A complete poll of a member: well, if it was begun since, asked for what asked and shows none of it."""
    wanted = {state.lookup.facts(code).key for code in reset.codes}
    shown = {state.lookup.facts(active.code).key for active in given.codes}
    if asks_in_vain(reset, given):
        return False
    if device_id in reset.verified or given.begun_ns < (reset.ended_ns or 0) or wanted & shown:
        return False
    after = replace(reset, verified=(*reset.verified, device_id))
    state.put(after)
    if set(after.verified) == set(reset.members):
        _succeed(state, after)
    return True


def began_again(state: State, reset: Reset) -> None:
    """What came while the daemon was away is yet to be told: its result, and polls of its members."""
    if reset.due_ns is not None:
        again_ns = state.now_ns + state.lookup.settings.reset.verify_ns
        state.put(replace(reset, due_ns=max(reset.due_ns, again_ns)))


# ---------------------------------------------------------------------- how it ends


def _charge(state: State, device_ids: tuple[str, ...], settings: ResetSettings) -> None:
    """What the window no longer spans is forgotten, also of parts that are no longer here."""
    since_ns = state.moment_ns - settings.limit_window_ns
    for charge in state.all(Charge):
        kept = tuple(at_ns for at_ns in charge.resets_ns if at_ns >= since_ns)
        if kept:
            state.put(replace(charge, resets_ns=kept))
        else:
            state.drop(charge)
    for device_id in device_ids:
        before = state.get(Charge, device_id) or Charge(device_id=device_id, resets_ns=())
        state.put(replace(before, resets_ns=(*before.resets_ns, state.moment_ns)))


def recorded(state: State, given: ResetsRecorded) -> bool:
    """Resets of which the record knows more than the store count as the record has them."""
    since_ns = state.moment_ns - state.lookup.settings.reset.limit_window_ns
    changed = False
    for told_id, resets_ns in given.resets_ns:
        device_id = state.node_id if told_id == NODE else told_id
        before = state.get(Charge, device_id)
        known = [at_ns for at_ns in before.resets_ns if at_ns >= since_ns] if before is not None else []
        told = tuple(at_ns for at_ns in resets_ns if at_ns >= since_ns)
        if len(told) > len(known):
            state.put(Charge(device_id=device_id, resets_ns=told))
            changed = True
    return changed


def _recharge(state: State, reset: Reset, counts: bool = True) -> None:
    """The hardware was reset at some time since the start: it counts from now, so that no window is short.

    Not ``counts``: nothing was done.
    """
    for device_id in (*reset.members, state.node_id):
        charge = state.get(Charge, device_id)
        if charge is not None and reset.started_ns in charge.resets_ns:
            others = tuple(at_ns for at_ns in charge.resets_ns if at_ns != reset.started_ns)
            state.put(replace(charge, resets_ns=(*others, state.moment_ns) if counts else others))


def _succeed(state: State, reset: Reset) -> None:
    """Every member was read and is well: what a reset clears is over."""
    parts = (part.id for member in reset.members for part in state.parts(member))
    for device_id in (*reset.members, *parts):
        for condition in state.on(Condition, device_id):
            if _is_over(state, condition, reset):
                clearing.close(state, condition, f"verified after {reset.id}")
    end(state, replace(reset, conditions=()), ActionState.DONE, "verified by a poll of every member")


def _is_over(state: State, condition: Condition, reset: Reset) -> bool:
    """What occurred since may ask anew. What the driver shows was in the very polls that verified: the reset
    was for another fault.
    """
    by_driver = condition.source == state.device(condition.device_id).source and not condition.rule
    if by_driver and grounds.is_shown(condition):
        return False
    facts = state.lookup.facts(condition.code)
    return facts.clear_on.reset and condition.occurred_ns <= (reset.ended_ns or 0)


def _fail(state: State, reset: Reset, how: ActionState, why: str) -> None:
    """Once more after the cool-down where every member answers."""
    answers = all(hindrances.answers(state, device_id) for device_id in reset.members)
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
        tell_step(state, EventKind.ACTION_FINISHED, reset, f"{how}: {why}; once more after the cool-down")
        return
    give_up(state, replace(reset, ended_ns=state.moment_ns), how, why)


def _with_what_came(state: State, reset: Reset) -> Reset:
    """What has come into its way since it began: once that has gone, the fault may ask again."""
    if has_failed(state, reset):
        return reset
    if hindrances.barrier(state, reset.members):
        return replace(reset, conditions=())
    if not hindrances.are_known(state, reset.members):
        return reset
    again = replace(reset, confirmed=True)
    return replace(reset, hindered=hindrances.of_start(state, again, state.lookup.settings.reset))


def refuse(state: State, reset: Reset, why: str) -> None:
    """It will not be done. One that was tried before has failed then."""
    if has_failed(state, reset):
        give_up(state, reset, ActionState.FAILED, why)
    else:
        end(state, reset, ActionState.REFUSED, why)


def has_failed(state: State, reset: Reset) -> bool:
    """It was tried, and what it was for is there still: nothing has shown its members well."""
    return reset.attempt > 1 and (bool(reset.who) or bool(grounds.asking(state, reset)))


def give_up(state: State, reset: Reset, how: ActionState, why: str) -> None:
    """It did not help, and is not tried again: a person is needed where it did not verify."""
    for device_id in reset.members:
        if device_id not in reset.verified:
            raise_own(state, device_id, "reset_failed", f"{reset.id} {how}: {why}")
    end(state, replace(reset, hindered=()), how, why)


def end(state: State, reset: Reset, how: ActionState, why: str) -> None:
    """However it ends, its group is let go."""
    ended = replace(reset, stage=ResetStage.ENDED, due_ns=None, result=f"{how}: {why}")
    state.put(ended)
    tell_step(state, EventKind.ACTION_FINISHED, ended, f"{how}: {why}")
    for hold in state.all(Hold):
        # By its id: a part that has said by now which it is took its holds along.
        if hold.kind is HoldKind.RESET_PENDING and hold.id.endswith(f"!{reset.id}"):
            clearing.lift(state, hold, f"{reset.id} has ended")


def raise_own(state: State, device_id: str, code: str, why: str) -> None:
    """A fault of the agent's own finding, as if it had been signalled."""
    if state.get(Device, device_id) is not None:
        signals.signalled(
            state,
            Signal(
                source="agent", device=device_id, code=code, assertion=Assertion.ONCE, evidence={"why": why}
            ),
        )


def tell_step(state: State, kind: EventKind, reset: Reset, why: str) -> None:
    """One event about an action."""
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
        **({"report": reset.report} if reset.report else {}),
    }
    code = reset.codes[0] if reset.codes else ""
    tell(state, kind, device, code=code, condition_id=reset.id, source="agent", why=why, evidence=evidence)
