"""The life of a reset, as a table. Every change of its stage is made here, and emitted.

                   announced                started               done
    announced ─────────────────> waiting ──────────> running ───────────> verifying
        │                         ^   ^                 │                     │
        │ needs approval          │   └─────────────────┴─────────────────────┘
        v                approved │                 once more
      asking ─────────────────────┘

    announced, asking, waiting ──> ended    called off, withdrawn; waiting also: expired
    running ─────────────────────> ended    dry run, refused, given up
    verifying ───────────────────> ended    verified, given up

``reset_proposals`` makes a reset and moves it up to its start; ``reset_policy`` forgets one that ended. Each
attempt is started here, has a result, is verified by polls, and is made once more where it did not help. Each
change of stage is one of three kinds of event (proposed, started, finished) about the device that asked, with
the reset's id.
"""

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final

from nodeagent.core.catalog.codes import root
from nodeagent.core.catalog.settings import ResetSettings
from nodeagent.core.faults import ending, signals
from nodeagent.core.judge.events import emit
from nodeagent.core.machines import reset_blockers
from nodeagent.core.model import (
    AGENT,
    Action,
    ActionResult,
    ActionState,
    ActiveSet,
    AskAgain,
    Assertion,
    Condition,
    Device,
    EventKind,
    Hold,
    HoldKind,
    Reset,
    ResetStage,
    Signal,
)
from nodeagent.core.state.state import EngineState


class ResetTrigger(StrEnum):
    """What may move a reset to another stage."""

    NEEDS_APPROVAL = "needs_approval"
    ANNOUNCED = "announced"
    """It was announced for long enough, and needs no approval (any more)."""

    APPROVED = "approved"
    CALLED_OFF = "called_off"
    """A person called it off, or did not approve it in time. Nothing is done."""

    WITHDRAWN = "withdrawn"
    """It is not wanted any more as it was proposed. Nothing is done."""

    EXPIRED = "expired"
    """What blocks it did not go in time. Nothing is done."""

    STARTED = "started"
    DRY_RUN = "dry_run"
    DONE = "done"
    """The driver has done it: polls must show that it helped."""

    REFUSED = "refused"
    """The shell refused it: nothing was done."""

    REFUSED_AS_BLOCKED = "refused_as_blocked"
    """The same, and something blocks it that came after its start."""

    REFUSED_AS_EXCLUDED = "refused_as_excluded"
    """The same, and a member of its group is never reset now."""

    ONCE_MORE = "once_more"
    """It did not help, and is tried again."""

    GIVEN_UP = "given_up"
    VERIFIED = "verified"


FIRST_STAGE: Final = ResetStage.ANNOUNCED

TRANSITIONS: Final[Mapping[tuple[ResetStage, ResetTrigger], ResetStage]] = {
    (ResetStage.ANNOUNCED, ResetTrigger.NEEDS_APPROVAL): ResetStage.ASKING,
    (ResetStage.ANNOUNCED, ResetTrigger.ANNOUNCED): ResetStage.WAITING,
    (ResetStage.ANNOUNCED, ResetTrigger.CALLED_OFF): ResetStage.ENDED,
    (ResetStage.ANNOUNCED, ResetTrigger.WITHDRAWN): ResetStage.ENDED,
    (ResetStage.ASKING, ResetTrigger.APPROVED): ResetStage.WAITING,
    (ResetStage.ASKING, ResetTrigger.CALLED_OFF): ResetStage.ENDED,
    (ResetStage.ASKING, ResetTrigger.WITHDRAWN): ResetStage.ENDED,
    (ResetStage.WAITING, ResetTrigger.STARTED): ResetStage.RUNNING,
    (ResetStage.WAITING, ResetTrigger.CALLED_OFF): ResetStage.ENDED,
    (ResetStage.WAITING, ResetTrigger.WITHDRAWN): ResetStage.ENDED,
    (ResetStage.WAITING, ResetTrigger.EXPIRED): ResetStage.ENDED,
    (ResetStage.RUNNING, ResetTrigger.DRY_RUN): ResetStage.ENDED,
    (ResetStage.RUNNING, ResetTrigger.DONE): ResetStage.VERIFYING,
    (ResetStage.RUNNING, ResetTrigger.REFUSED): ResetStage.ENDED,
    (ResetStage.RUNNING, ResetTrigger.REFUSED_AS_BLOCKED): ResetStage.ENDED,
    (ResetStage.RUNNING, ResetTrigger.REFUSED_AS_EXCLUDED): ResetStage.ENDED,
    (ResetStage.RUNNING, ResetTrigger.ONCE_MORE): ResetStage.WAITING,
    (ResetStage.RUNNING, ResetTrigger.GIVEN_UP): ResetStage.ENDED,
    (ResetStage.VERIFYING, ResetTrigger.VERIFIED): ResetStage.ENDED,
    (ResetStage.VERIFYING, ResetTrigger.ONCE_MORE): ResetStage.WAITING,
    (ResetStage.VERIFYING, ResetTrigger.GIVEN_UP): ResetStage.ENDED,
}
"""What is not here does not happen: ``advance`` then changes nothing."""

ASK_AGAIN: Final[Mapping[ResetTrigger, AskAgain]] = {
    ResetTrigger.CALLED_OFF: AskAgain.NEVER,
    ResetTrigger.WITHDRAWN: AskAgain.AT_ONCE,
    ResetTrigger.EXPIRED: AskAgain.ONCE_UNBLOCKED,
    ResetTrigger.DRY_RUN: AskAgain.NEVER,
    ResetTrigger.REFUSED: AskAgain.NEVER,
    ResetTrigger.REFUSED_AS_BLOCKED: AskAgain.ONCE_UNBLOCKED,
    ResetTrigger.REFUSED_AS_EXCLUDED: AskAgain.AT_ONCE,
    ResetTrigger.GIVEN_UP: AskAgain.NEVER,
    ResetTrigger.VERIFIED: AskAgain.AT_ONCE,
}
"""When the faults that asked for a reset may ask for another, by how it ended. One that failed: never."""


def can(reset: Reset, happened: ResetTrigger) -> bool:
    return (reset.stage, happened) in TRANSITIONS


def advance(state: EngineState, reset: Reset, happened: ResetTrigger, **changes: Any) -> Reset | None:
    """Put the reset into the stage that follows, with ``changes`` of its other fields.

    None where nothing follows; then the state is as it was.
    """
    stage = TRANSITIONS.get((reset.stage, happened))
    if stage is None:
        return None
    after = replace(reset, stage=stage, **changes)
    state.put(after)
    return after


# ---------------------------------------------------------------------- how it ends


def call_off(state: EngineState, reset: Reset, happened: ResetTrigger, why: str) -> None:
    """It will not be done. One that was tried before has failed then."""
    if has_failed(state, reset):
        give_up(state, reset, happened, ActionState.FAILED, why)
    else:
        end(state, reset, happened, ActionState.REFUSED, why, ASK_AGAIN[happened])


def has_failed(state: EngineState, reset: Reset) -> bool:
    """It was tried, and what it was for is there still: nothing has shown its members well."""
    return reset.attempt > 1 and (bool(reset.who) or bool(reset_blockers.asking_conditions(state, reset)))


def give_up(state: EngineState, reset: Reset, happened: ResetTrigger, how: ActionState, why: str) -> None:
    """It did not help, and is not tried again: a person is needed where it did not verify."""
    if not can(reset, happened):
        return
    for device_id in reset.members:
        if device_id not in reset.verified:
            raise_own(state, device_id, "reset_failed", f"{reset.id} {how}: {why}")
    end(state, reset, happened, how, why, AskAgain.NEVER)


def end(
    state: EngineState,
    reset: Reset,
    happened: ResetTrigger,
    how: ActionState,
    why: str,
    ask_again: AskAgain,
) -> None:
    """However it ends, its group is let go. What blocked it is kept only where that must go first."""
    ended = advance(
        state,
        reset,
        happened,
        due_ns=None,
        outcome=how,
        may_ask_again=ask_again is not AskAgain.NEVER,
        hindered=reset.hindered if ask_again is AskAgain.ONCE_UNBLOCKED else (),
        result=f"{how}: {why}",
    )
    if ended is None:
        return
    emit_finished(state, ended, how, why)
    devices = reset_blockers.names(state, reset.members)
    for hold in state.all(Hold):
        # By its id: a part that was identified since has taken its holds along.
        if hold.kind is HoldKind.RESET_PENDING and hold.id.endswith(f"!{reset.id}"):
            ending.lift(state, hold, f"the reset of {devices} has ended")


def raise_own(state: EngineState, device_id: str, code: str, why: str) -> None:
    """A fault that the agent itself found, as if it had been signalled."""
    if state.get(Device, device_id) is not None:
        signals.signalled(
            state,
            Signal(
                source=AGENT, device=device_id, code=code, assertion=Assertion.ONCE, evidence={"why": why}
            ),
        )


def as_of_now(reset: Reset) -> Reset:
    """One that a version stored which knew neither ``outcome`` nor ``may_ask_again``: it emptied
    ``conditions`` where they might ask again, and began ``result`` with the name of the outcome.
    """
    if reset.stage is not ResetStage.ENDED or reset.outcome is not None:
        return reset
    word = reset.result.partition(":")[0]
    outcome = ActionState(word) if word in set(ActionState) else ActionState.INTERRUPTED
    may_ask_again = bool(reset.hindered) or not (reset.conditions or reset.who)
    return replace(reset, outcome=outcome, may_ask_again=may_ask_again)


# ---------------------------------------------------------------------- its events


def emit_finished(state: EngineState, reset: Reset, how: ActionState, why: str) -> None:
    """The end of an attempt, or of a reset that was not tried."""
    _emit(state, EventKind.ACTION_FINISHED, reset, f"{how}: {why}", {OUTCOME: str(how)})


def emit_step(state: EngineState, kind: EventKind, reset: Reset, why: str) -> None:
    """One event about a reset in progress."""
    _emit(state, kind, reset, why, {})


ONCE: Final = "once"
"""The key, in the evidence of an action's events, of one that is done by order where none is by itself."""

OUTCOME: Final = "outcome"
"""The key, in the evidence of ACTION_FINISHED, of the ``ActionState``."""


def _emit(state: EngineState, kind: EventKind, reset: Reset, why: str, more: Mapping[str, str]) -> None:
    device = state.get(Device, reset.asker_id) or state.device(state.node_id)
    evidence = {
        "mode": str(reset.mode),
        **({ONCE: "true"} if reset.once else {}),
        "devices": reset_blockers.names(state, reset.members),
        "attempt": str(reset.attempt),
        **{
            name: f"{(at_ns - reset.proposed_ns) / 1e9:.3f}"
            for name, at_ns in (("started_after_s", reset.started_ns), ("ended_after_s", reset.ended_ns))
            if at_ns is not None
        },
        **({"report": reset.report} if reset.report else {}),
        **more,
    }
    code = reset.codes[0] if reset.codes else ""
    emit(state, kind, device, code=code, condition_id=reset.id, source=AGENT, why=why, evidence=evidence)


_MOST_ATTEMPTS = 2


def start(state: EngineState, reset: Reset, settings: ResetSettings) -> None:
    """Nothing blocks it any more: count it, and hand it to the shell. A dry run ends as it starts."""
    at_ns = state.moment_ns
    due_ns = at_ns + settings.run_ns
    started = advance(
        state,
        reset,
        ResetTrigger.STARTED,
        hindered=(),
        told=(),
        started_ns=at_ns,
        ended_ns=None,
        due_ns=due_ns,
    )
    if started is None:
        return
    names = reset_blockers.names(state, reset.members)
    emit_step(state, EventKind.ACTION_STARTED, started, f"reset of {names}")
    if reset.is_dry_run:
        on_paper = replace(started, ended_ns=at_ns)
        how = ActionState.DONE
        end(
            state,
            on_paper,
            ResetTrigger.DRY_RUN,
            how,
            "dry run: nothing was done",
            ASK_AGAIN[ResetTrigger.DRY_RUN],
        )
        return
    reset_blockers.add_past_reset(state, reset, settings)
    state.actions.append(
        Action(
            id=reset.id,
            kind="reset",
            attempt=reset.attempt,
            devices=reset.members,
            reasons=reset.codes,
            deadline_ns=due_ns,
            holders=reset_blockers.users_of_registered_jobs(state, reset, settings),
        )
    )


def is_running(state: EngineState, action: Action) -> bool:
    """False where its time has run out already: a step may span more than its deadline."""
    reset = state.get(Reset, action.id)
    return reset is not None and (reset.stage, reset.attempt) == (ResetStage.RUNNING, action.attempt)


def due(state: EngineState, reset: Reset) -> None:
    """The time for its result, or for its verification, is over."""
    if reset.stage is ResetStage.RUNNING:
        reset_blockers.count_from_now(state, reset)
        _fail(state, reset, ActionState.TIMED_OUT, "no result came")
    elif reset.stage is ResetStage.VERIFYING:
        unwell = tuple(device_id for device_id in reset.members if device_id not in reset.verified)
        why = f"no poll showed {reset_blockers.names(state, unwell)} healthy"
        _fail(state, reset, ActionState.FAILED, why)


def resulted(state: EngineState, given: ActionResult) -> bool:
    """The result of an attempt. Only one that runs can have a result: a late one is ignored."""
    reset = state.get(Reset, given.action_id)
    if reset is None or not can(reset, ResetTrigger.DONE) or given.attempt not in (0, reset.attempt):
        return False
    reset_blockers.count_from_now(state, reset, counts=given.state is not ActionState.REFUSED)
    if given.state is ActionState.DONE:
        advance(
            state,
            reset,
            ResetTrigger.DONE,
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


def verified(state: EngineState, reset: Reset, device_id: str, given: ActiveSet) -> bool:
    """A complete poll of a member: well, if it was begun since, asked for what asked and shows none of it."""
    wanted = {state.lookup.facts(code).key for code in reset.codes}
    shown = {state.lookup.facts(active.code).key for active in given.codes}
    if not can(reset, ResetTrigger.VERIFIED) or asks_in_vain(reset, given):
        return False
    if device_id in reset.verified or given.begun_ns < (reset.ended_ns or 0) or wanted & shown:
        return False
    after = replace(reset, verified=(*reset.verified, device_id))
    state.put(after)
    if set(after.verified) == set(reset.members):
        _succeed(state, after)
    return True


def began_again(state: EngineState, reset: Reset) -> None:
    """What came while the daemon was away is not known yet: its result, and polls of its members."""
    if reset.due_ns is not None:
        again_ns = state.now_ns + state.lookup.settings.reset.verify_ns
        state.put(replace(reset, due_ns=max(reset.due_ns, again_ns)))


# ---------------------------------------------------------------------- how it ends


def _succeed(state: EngineState, reset: Reset) -> None:
    """Every member was read and is well: what a reset clears is over."""
    parts = (part.id for member in reset.members for part in state.parts(member))
    for device_id in (*reset.members, *parts):
        for condition in state.on(Condition, device_id):
            if _is_over(state, condition, reset):
                ending.close(state, condition, f"verified after {reset.id}")
    why = "verified by a poll of every member"
    end(state, reset, ResetTrigger.VERIFIED, ActionState.DONE, why, ASK_AGAIN[ResetTrigger.VERIFIED])


def _is_over(state: EngineState, condition: Condition, reset: Reset) -> bool:
    """What occurred since may ask again. What the driver shows was in the very polls that verified: the reset
    was for another fault.
    """
    by_driver = condition.source == state.device(condition.device_id).source and not condition.origin.rule
    if by_driver and condition.presence.is_shown:
        return False
    facts = state.lookup.facts(condition.code)
    return facts.clear_on.reset and condition.occurred_ns <= (reset.ended_ns or 0)


def _fail(state: EngineState, reset: Reset, how: ActionState, why: str) -> None:
    """Once more after the cool-down where every member answers."""
    answers = all(reset_blockers.answers(state, device_id) for device_id in reset.members)
    settings = state.lookup.settings.reset
    if (
        reset.attempt >= _MOST_ATTEMPTS
        or not answers
        or reset_blockers.exhausted(state, reset.members, settings)
    ):
        give_up(state, replace(reset, ended_ns=state.moment_ns), ResetTrigger.GIVEN_UP, how, why)
        return
    again = advance(
        state,
        reset,
        ResetTrigger.ONCE_MORE,
        attempt=reset.attempt + 1,
        confirmed=False,
        verified=(),
        ended_ns=state.moment_ns,
        due_ns=state.moment_ns + settings.cool_down_ns,
    )
    if again is not None:
        emit_finished(state, reset, how, f"{why}; once more after the cool-down")


def _refused(state: EngineState, reset: Reset, why: str) -> None:
    """Where something has come into its way since it began, its faults may ask again once that has gone."""
    if reset_blockers.excludes(state, reset.members):
        call_off(state, reset, ResetTrigger.REFUSED_AS_EXCLUDED, why)
        return
    found: tuple[str, ...] = ()
    if reset_blockers.are_known(state, reset.members):
        found = reset_blockers.of_start(state, replace(reset, confirmed=True), state.lookup.settings.reset)
    happened = ResetTrigger.REFUSED_AS_BLOCKED if found else ResetTrigger.REFUSED
    call_off(state, replace(reset, hindered=found), happened, why)
