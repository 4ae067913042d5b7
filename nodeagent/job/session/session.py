"""A session of ``job run``: what is given goes in, with its time; what is to be done comes out.

It does nothing, and knows no clock. Its life is the table below: the phase and what is given name a handler.
What has no row changes nothing. Equal inputs at equal times give equal states and effects.

            may run            begun              it fails
    gate ───────────> starting ─────> running ─────────────────> judging
     ^  ^                               │  │ hangs                  │
     │  │ its pause is over      to end │  └────────> gathering     │ settled
     │  │                               v                 │         v
     │  pausing <──────────────────── stopping <──────────┴─────────┘
     │                       empty      │
     └──────────────────────────────────┤ grace is over
                                        v
                                     killing ──> as stopping, or left

    each of them ──> left    as the table of decisions gives

The journal: every input is written before its effects are done, except a ``SessionTick`` before
``next_deadline_ns``, which changes nothing. Replayed, it gives the same state. Then ``Began`` is given again,
with what outlived the earlier supervisor, and the effects that follow from it are done. Of the effects of the
replay only reports are repeated: those that the daemon has not taken, by their number.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from nodeagent.job.model import RunRequest
from nodeagent.job.session import ending, running, starting, sub_health
from nodeagent.job.session.ending import explains
from nodeagent.job.session.state import DaemonLinkState, SessionPhase, SessionState, Transition
from nodeagent.job.session.values import (
    Armed,
    CalledOff,
    CommandExited,
    Emptied,
    Gathered,
    Hung,
    KeepCounts,
    Leave,
    LinkBack,
    LinkLost,
    NotRun,
    Progressed,
    Ran,
    RunNotReady,
    SessionBegan,
    SessionEffect,
    SessionInput,
    SessionTick,
    Signalled,
    Slowed,
)

Handler = Callable[[Transition, Any], None]

_OF_ONE_RUN: Final = (
    Ran,
    NotRun,
    RunNotReady,
    CalledOff,
    CommandExited,
    Emptied,
    Armed,
    Hung,
    Slowed,
    Gathered,
    Progressed,
)

_BEFORE_THE_TIME: Final = (SessionBegan, Emptied)
"""Before anything else, what is due is done. Not so here: while a supervisor was not there, or slept, nobody
watched, and what has ended meanwhile was not unkillable."""

_TABLE: Final[Mapping[SessionPhase, Mapping[type, Handler]]] = {
    SessionPhase.NEW: {},
    SessionPhase.GATE: {
        RunRequest: starting.wanted_at_gate,
        LinkLost: starting.link_at_gate,
        LinkBack: starting.link_at_gate,
        Signalled: ending.signalled_while_waiting,
    },
    SessionPhase.PAUSING: {
        RunRequest: starting.wanted_at_gate,
        Signalled: ending.signalled_while_waiting,
    },
    SessionPhase.STARTING: {
        Ran: starting.ran,
        NotRun: starting.not_run,
        RunNotReady: starting.not_ready,
        CalledOff: starting.called_off,
        RunRequest: running.wanted_while_running,
        Signalled: ending.signalled_while_running,
    },
    SessionPhase.RUNNING: {
        RunRequest: running.wanted_while_running,
        CommandExited: running.exited,
        Emptied: running.emptied,
        Armed: running.armed,
        Hung: running.hung,
        Slowed: running.slow,
        Gathered: running.gathered,
        Progressed: running.progressed,
        Signalled: ending.signalled_while_running,
    },
    SessionPhase.GATHERING: {
        RunRequest: running.wanted_while_running,
        CommandExited: running.exited_while_gathering,
        Emptied: running.emptied_while_judging,
        Gathered: running.gathered_before_stop,
        Progressed: running.progressed,
        Signalled: ending.signalled_while_running,
    },
    SessionPhase.JUDGING: {
        RunRequest: running.wanted_while_judging,
        LinkBack: running.link_back_while_judging,
        Emptied: running.emptied_while_judging,
        Progressed: running.progressed,
        Signalled: ending.signalled_while_judging,
    },
    SessionPhase.STOPPING: {
        Ran: ending.ran_too_late,
        NotRun: ending.not_run_at_all,
        CalledOff: ending.not_run_at_all,
        CommandExited: ending.exited_while_stopping,
        Emptied: ending.emptied_while_stopping,
        Progressed: running.progressed,
        RunRequest: ending.wanted_while_stopping,
        Signalled: ending.signalled_while_stopping,
    },
    SessionPhase.KILLING: {
        Ran: ending.ran_too_late,
        NotRun: ending.not_run_at_all,
        CalledOff: ending.not_run_at_all,
        CommandExited: ending.exited_while_stopping,
        Emptied: ending.emptied_while_stopping,
        Progressed: running.progressed,
        RunRequest: ending.wanted_while_stopping,
        Signalled: ending.signalled_while_stopping,
    },
    SessionPhase.LEFT: {},
}

_AT_ITS_END: Final[Mapping[SessionPhase, Callable[[Transition], None]]] = {
    SessionPhase.GATE: starting.not_healed,
    SessionPhase.PAUSING: starting.come_to_gate,
    SessionPhase.STARTING: starting.never_ready,
    SessionPhase.GATHERING: running.no_evidence,
    SessionPhase.JUDGING: running.settle,
    SessionPhase.STOPPING: ending.kill,
    SessionPhase.KILLING: ending.unkillable,
}
"""What happens when the time of a phase is over."""


class JobSession:
    """``state`` may be read by the owner, and is changed by ``step`` alone."""

    def __init__(self) -> None:
        self.state = SessionState()

    def step(self, now_ns: int, given: SessionInput) -> tuple[SessionEffect, ...]:
        transition = Transition(now_ns, self.state)
        if not isinstance(given, _BEFORE_THE_TIME):
            _do_what_is_due(transition)
        _take(transition, given)
        _do_what_is_due(transition)
        self.state = transition.state
        return tuple(transition.effects)

    def next_deadline_ns(self) -> int | None:
        """When something is to be done even if nothing is given: give a ``Tick`` then."""
        return _next(self.state)

    def leave_again(self) -> tuple[SessionEffect, ...]:
        """The effects of a session that had left, if its supervisor was killed before it could do them."""
        state = self.state
        if state.status is None:
            return ()
        return KeepCounts(counts=state.counts), Leave(status=state.status, why="its supervisor was ended")

    def is_written(self, now_ns: int, given: SessionInput) -> bool:
        """Whether that belongs into the journal."""
        due_ns = self.next_deadline_ns()
        return not isinstance(given, SessionTick) or (due_ns is not None and due_ns <= now_ns)


def _next(state: SessionState) -> int | None:
    return min((each for each in (state.due_ns, state.evidence_due_ns) if each is not None), default=None)


def _do_what_is_due(transition: Transition) -> None:
    """Each thing once: what follows from it begins now, so that one that slept too long skips nothing."""
    while (due_ns := _next(transition.state)) is not None and due_ns <= transition.now_ns:
        if due_ns == transition.state.evidence_due_ns:
            running.no_evidence(transition)
        else:
            transition.change(due_ns=None)
            _AT_ITS_END[transition.state.phase](transition)


def _take(transition: Transition, given: SessionInput) -> None:
    if isinstance(given, SessionBegan):
        starting.began(transition, given)
        return
    if isinstance(given, _OF_ONE_RUN) and given.run != transition.state.run:
        return
    _note(transition, given)
    handler = _TABLE[transition.state.phase].get(type(given))
    if handler is not None:
        handler(transition, given)


def _note(transition: Transition, given: SessionInput) -> None:
    """What holds in any phase."""
    if isinstance(given, LinkLost):
        transition.change(link=DaemonLinkState.DOWN, is_fresh=False)
    elif isinstance(given, LinkBack):
        transition.change(link=DaemonLinkState.UP, is_fresh=False, job=given.job)
    elif isinstance(given, RunRequest):
        state = transition.state
        if given != state.wanted and explains(given, state.run):
            transition.change(blame=given, blamed_ns=transition.now_ns)
        transition.change(wanted=given, is_fresh=True)
        sub_health.noted(transition, given)
