"""The life of a reset, as a table. Every change of its stage is made here, and emitted.

                   announced                started               done
    announced ─────────────────> waiting ──────────> running ───────────> verifying
        │                         ^   ^                 │                     │
        │ needs approval          │   └─────────────────┴─────────────────────┘
        v                approved │                 once more
      asking ─────────────────────┘

    announced, asking, waiting ──> ended    called off
    running ─────────────────────> ended    dry run, refused, given up
    verifying ───────────────────> ended    verified, given up

``proposals`` makes a reset and moves it up to its start, ``attempts`` from there on; ``policy`` forgets one
that ended. Each change is one of three kinds of event (proposed, started, finished) about the device
that asked, with the reset's id.
"""

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final

from nodeagent.core.faults import closing, signals
from nodeagent.core.model import (
    ActionState,
    Assertion,
    Device,
    EventKind,
    Hold,
    HoldKind,
    Reset,
    ResetStage,
    Signal,
)
from nodeagent.core.resets import asking_faults, blockers
from nodeagent.core.state.state import State
from nodeagent.core.verdicts.emit import emit


class Happened(StrEnum):
    """What may move a reset to another stage."""

    NEEDS_APPROVAL = "needs_approval"
    ANNOUNCED = "announced"
    """It was announced for long enough, and nobody needs to approve it (any more)."""

    APPROVED = "approved"
    CALLED_OFF = "called_off"
    """A person or the time called it off, or it is not wanted any more. Nothing is done."""

    STARTED = "started"
    DRY_RUN = "dry_run"
    DONE = "done"
    """The driver has done it: polls must show that it helped."""

    REFUSED = "refused"
    """Whoever was to do it refused: nothing was done."""

    ONCE_MORE = "once_more"
    """It did not help, and is tried again."""

    GIVEN_UP = "given_up"
    VERIFIED = "verified"


FIRST_STAGE: Final = ResetStage.ANNOUNCED

TRANSITIONS: Final[Mapping[tuple[ResetStage, Happened], ResetStage]] = {
    (ResetStage.ANNOUNCED, Happened.NEEDS_APPROVAL): ResetStage.ASKING,
    (ResetStage.ANNOUNCED, Happened.ANNOUNCED): ResetStage.WAITING,
    (ResetStage.ANNOUNCED, Happened.CALLED_OFF): ResetStage.ENDED,
    (ResetStage.ASKING, Happened.APPROVED): ResetStage.WAITING,
    (ResetStage.ASKING, Happened.CALLED_OFF): ResetStage.ENDED,
    (ResetStage.WAITING, Happened.STARTED): ResetStage.RUNNING,
    (ResetStage.WAITING, Happened.CALLED_OFF): ResetStage.ENDED,
    (ResetStage.RUNNING, Happened.DRY_RUN): ResetStage.ENDED,
    (ResetStage.RUNNING, Happened.DONE): ResetStage.VERIFYING,
    (ResetStage.RUNNING, Happened.REFUSED): ResetStage.ENDED,
    (ResetStage.RUNNING, Happened.ONCE_MORE): ResetStage.WAITING,
    (ResetStage.RUNNING, Happened.GIVEN_UP): ResetStage.ENDED,
    (ResetStage.VERIFYING, Happened.VERIFIED): ResetStage.ENDED,
    (ResetStage.VERIFYING, Happened.ONCE_MORE): ResetStage.WAITING,
    (ResetStage.VERIFYING, Happened.GIVEN_UP): ResetStage.ENDED,
}
"""What is not here does not happen: ``advance`` then changes nothing."""


def can(reset: Reset, happened: Happened) -> bool:
    return (reset.stage, happened) in TRANSITIONS


def advance(state: State, reset: Reset, happened: Happened, **changes: Any) -> Reset | None:
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


def call_off(
    state: State, reset: Reset, happened: Happened, why: str, *, may_ask_again: bool = False
) -> None:
    """It will not be done. One that was tried before has failed then."""
    if has_failed(state, reset):
        give_up(state, reset, happened, ActionState.FAILED, why)
    else:
        end(state, reset, happened, ActionState.REFUSED, why, may_ask_again=may_ask_again)


def has_failed(state: State, reset: Reset) -> bool:
    """It was tried, and what it was for is there still: nothing has shown its members well."""
    return reset.attempt > 1 and (bool(reset.who) or bool(asking_faults.asking_conditions(state, reset)))


def give_up(state: State, reset: Reset, happened: Happened, how: ActionState, why: str) -> None:
    """It did not help, and is not tried again: a person is needed where it did not verify."""
    if not can(reset, happened):
        return
    for device_id in reset.members:
        if device_id not in reset.verified:
            raise_own(state, device_id, "reset_failed", f"{reset.id} {how}: {why}")
    end(state, replace(reset, hindered=()), happened, how, why)


def end(
    state: State, reset: Reset, happened: Happened, how: ActionState, why: str, *, may_ask_again: bool = False
) -> None:
    """However it ends, its group is let go."""
    ended = advance(
        state,
        reset,
        happened,
        due_ns=None,
        outcome=how,
        may_ask_again=may_ask_again,
        result=f"{how}: {why}",
    )
    if ended is None:
        return
    emit_finished(state, ended, how, why)
    for hold in state.all(Hold):
        # By its id: a part that has said by now which it is took its holds along.
        if hold.kind is HoldKind.RESET_PENDING and hold.id.endswith(f"!{reset.id}"):
            closing.lift(state, hold, f"{reset.id} has ended")


def raise_own(state: State, device_id: str, code: str, why: str) -> None:
    """A fault of the agent's own finding, as if it had been signalled."""
    if state.get(Device, device_id) is not None:
        signals.signalled(
            state,
            Signal(
                source="agent", device=device_id, code=code, assertion=Assertion.ONCE, evidence={"why": why}
            ),
        )


def as_of_now(reset: Reset) -> Reset:
    """One that a version stored which knew neither ``outcome`` nor ``may_ask_again``: it emptied
    ``conditions`` where they might ask again, and began ``result`` with the word of the outcome.
    """
    if reset.stage is not ResetStage.ENDED or reset.outcome is not None:
        return reset
    word = reset.result.partition(":")[0]
    outcome = ActionState(word) if word in set(ActionState) else ActionState.INTERRUPTED
    may_ask_again = bool(reset.hindered) or not (reset.conditions or reset.who)
    return replace(reset, outcome=outcome, may_ask_again=may_ask_again)


# ---------------------------------------------------------------------- its events


def emit_finished(state: State, reset: Reset, how: ActionState, why: str) -> None:
    """The end of an attempt, or of a reset that was not tried."""
    _emit(state, EventKind.ACTION_FINISHED, reset, f"{how}: {why}", {OUTCOME: str(how)})


def emit_step(state: State, kind: EventKind, reset: Reset, why: str) -> None:
    """One event about a reset in progress."""
    _emit(state, kind, reset, why, {})


ONCE: Final = "once"
"""The key, in the evidence of an action's events, of one that is done by order where none is by itself."""

OUTCOME: Final = "outcome"
"""The key, in the evidence of ACTION_FINISHED, of the ``ActionState``."""


def _emit(state: State, kind: EventKind, reset: Reset, why: str, more: Mapping[str, str]) -> None:
    device = state.get(Device, reset.asker_id) or state.device(state.node_id)
    evidence = {
        "mode": str(reset.mode),
        **({ONCE: "true"} if reset.once else {}),
        "devices": blockers.names(state, reset.members),
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
    emit(state, kind, device, code=code, condition_id=reset.id, source="agent", why=why, evidence=evidence)
