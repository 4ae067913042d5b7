"""An attempt of a reset: started, its result, verified by polls, and once more where it did not help.

Which stage follows which is in ``lifecycle``; what comes before the start is in ``proposals``.
"""

from dataclasses import replace

from nodeagent.core.catalog.codes import root
from nodeagent.core.catalog.settings import ResetSettings
from nodeagent.core.faults import closing
from nodeagent.core.model import (
    Action,
    ActionResult,
    ActionState,
    ActiveSet,
    Condition,
    EventKind,
    Reset,
    ResetStage,
)
from nodeagent.core.resets import asking_faults, blockers, lifecycle, past_resets, registered_jobs
from nodeagent.core.resets.lifecycle import Happened
from nodeagent.core.state.state import State

_MOST_ATTEMPTS = 2


def start(state: State, reset: Reset, settings: ResetSettings) -> None:
    """Nothing blocks it any more: count it, and hand it to the shell. A dry run ends as it starts."""
    at_ns = state.moment_ns
    due_ns = at_ns + settings.run_ns
    started = lifecycle.advance(
        state, reset, Happened.STARTED, hindered=(), told=(), started_ns=at_ns, ended_ns=None, due_ns=due_ns
    )
    if started is None:
        return
    names = blockers.names(state, reset.members)
    lifecycle.emit_step(state, EventKind.ACTION_STARTED, started, f"reset of {names}")
    if reset.is_dry_run:
        on_paper = replace(started, ended_ns=at_ns)
        lifecycle.end(state, on_paper, Happened.DRY_RUN, ActionState.DONE, "dry run: nothing was done")
        return
    past_resets.add(state, reset, settings)
    state.actions.append(
        Action(
            id=reset.id,
            kind="reset",
            attempt=reset.attempt,
            devices=reset.members,
            reasons=reset.codes,
            deadline_ns=due_ns,
            holders=registered_jobs.holders(state, reset, settings),
        )
    )


def is_running(state: State, action: Action) -> bool:
    """False where its time has run out already: a step may span more than its deadline."""
    reset = state.get(Reset, action.id)
    return reset is not None and (reset.stage, reset.attempt) == (ResetStage.RUNNING, action.attempt)


def due(state: State, reset: Reset) -> None:
    """The time for its result, or for its verification, is over."""
    if reset.stage is ResetStage.RUNNING:
        past_resets.count_from_now(state, reset)
        _fail(state, reset, ActionState.TIMED_OUT, "no result came")
    elif reset.stage is ResetStage.VERIFYING:
        unwell = tuple(device_id for device_id in reset.members if device_id not in reset.verified)
        why = f"no poll showed {blockers.names(state, unwell)} healthy"
        _fail(state, reset, ActionState.FAILED, why)


def resulted(state: State, given: ActionResult) -> bool:
    """The shell says how it went. Only an attempt that runs can have a result; what comes late has none."""
    reset = state.get(Reset, given.action_id)
    if reset is None or not lifecycle.can(reset, Happened.DONE) or given.attempt not in (0, reset.attempt):
        return False
    past_resets.count_from_now(state, reset, counts=given.state is not ActionState.REFUSED)
    if given.state is ActionState.DONE:
        lifecycle.advance(
            state,
            reset,
            Happened.DONE,
            ended_ns=state.moment_ns,
            due_ns=state.moment_ns + state.lookup.settings.reset.verify_ns,
            verified=(),
            report=given.reason,
        )
    elif given.state is ActionState.REFUSED:
        _refused(state, reset, given.reason)
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
    if not lifecycle.can(reset, Happened.VERIFIED) or asks_in_vain(reset, given):
        return False
    if device_id in reset.verified or given.begun_ns < (reset.ended_ns or 0) or wanted & shown:
        return False
    after = replace(reset, verified=(*reset.verified, device_id))
    state.put(after)
    if set(after.verified) == set(reset.members):
        _succeed(state, after)
    return True


def began_again(state: State, reset: Reset) -> None:
    """What came while the daemon was away is not known yet: its result, and polls of its members."""
    if reset.due_ns is not None:
        again_ns = state.now_ns + state.lookup.settings.reset.verify_ns
        state.put(replace(reset, due_ns=max(reset.due_ns, again_ns)))


# ---------------------------------------------------------------------- how it ends


def _succeed(state: State, reset: Reset) -> None:
    """Every member was read and is well: what a reset clears is over."""
    parts = (part.id for member in reset.members for part in state.parts(member))
    for device_id in (*reset.members, *parts):
        for condition in state.on(Condition, device_id):
            if _is_over(state, condition, reset):
                closing.close(state, condition, f"verified after {reset.id}")
    why = "verified by a poll of every member"
    lifecycle.end(state, reset, Happened.VERIFIED, ActionState.DONE, why, may_ask_again=True)


def _is_over(state: State, condition: Condition, reset: Reset) -> bool:
    """What occurred since may ask anew. What the driver shows was in the very polls that verified: the reset
    was for another fault.
    """
    by_driver = condition.source == state.device(condition.device_id).source and not condition.rule
    if by_driver and asking_faults.is_shown(condition):
        return False
    facts = state.lookup.facts(condition.code)
    return facts.clear_on.reset and condition.occurred_ns <= (reset.ended_ns or 0)


def _fail(state: State, reset: Reset, how: ActionState, why: str) -> None:
    """Once more after the cool-down where every member answers."""
    answers = all(blockers.answers(state, device_id) for device_id in reset.members)
    settings = state.lookup.settings.reset
    if (
        reset.attempt >= _MOST_ATTEMPTS
        or not answers
        or past_resets.exhausted(state, reset.members, settings)
    ):
        lifecycle.give_up(state, replace(reset, ended_ns=state.moment_ns), Happened.GIVEN_UP, how, why)
        return
    again = lifecycle.advance(
        state,
        reset,
        Happened.ONCE_MORE,
        attempt=reset.attempt + 1,
        confirmed=False,
        verified=(),
        ended_ns=state.moment_ns,
        due_ns=state.moment_ns + settings.cool_down_ns,
    )
    if again is not None:
        lifecycle.emit_finished(state, reset, how, f"{why}; once more after the cool-down")


def _refused(state: State, reset: Reset, why: str) -> None:
    """Where something has come into its way since it began, its faults may ask again once that has gone."""
    if blockers.excludes(state, reset.members):
        lifecycle.call_off(state, reset, Happened.REFUSED, why, may_ask_again=True)
        return
    found: tuple[str, ...] = ()
    if blockers.are_known(state, reset.members):
        found = blockers.of_start(state, replace(reset, confirmed=True), state.lookup.settings.reset)
    again = replace(reset, hindered=found)
    lifecycle.call_off(state, again, Happened.REFUSED, why, may_ask_again=bool(found))
