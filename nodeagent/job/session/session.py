"""A session of ``job run``: what is given goes in, with its time; what is to be done comes out.

It does nothing, and knows no clock. Its life is the table below: the phase and what is given name a handler.
What has no row changes nothing. Equal values at equal times give equal states and orders.

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

    each of them ──> left    as the table of verdicts says

The journal: every given value is written before its orders are done, except a ``Tick`` before
``next_deadline_ns``, which changes nothing. Replayed, it gives the same state. Then ``Began`` is given again,
with what outlived the earlier supervisor, and the orders that follow from it are done. Of the orders of the
replay only reports are repeated: those that the daemon has not taken, by their number.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from nodeagent.job.inputs import (
    Began,
    Emptied,
    Exited,
    Gathered,
    Given,
    Hung,
    LinkBack,
    LinkLost,
    NotRun,
    Progressed,
    Ran,
    Signalled,
    Tick,
    Wanted,
)
from nodeagent.job.orders import Keep, Leave, Order
from nodeagent.job.session import beginning, gate, running, stopping
from nodeagent.job.session.ending import explains
from nodeagent.job.session.session_state import Link, Phase, State, Turn

Handler = Callable[[Turn, Any], None]

_OF_ONE_RUN: Final = (Ran, NotRun, Exited, Emptied, Hung, Gathered, Progressed)

_BEFORE_THE_TIME: Final = (Began, Emptied)
"""Before anything else, what is due is done. Not so here: while a supervisor was not there, or slept, nobody
watched, and what has ended meanwhile was not unkillable."""

_TABLE: Final[Mapping[Phase, Mapping[type, Handler]]] = {
    Phase.NEW: {},
    Phase.GATE: {
        Wanted: gate.wanted_at_gate,
        LinkLost: gate.link_at_gate,
        LinkBack: gate.link_at_gate,
        Signalled: stopping.signalled_while_waiting,
    },
    Phase.PAUSING: {
        Wanted: gate.wanted_at_gate,
        Signalled: stopping.signalled_while_waiting,
    },
    Phase.STARTING: {
        Ran: gate.ran,
        NotRun: gate.not_run,
        Wanted: running.wanted_while_running,
        Signalled: stopping.signalled_while_running,
    },
    Phase.RUNNING: {
        Wanted: running.wanted_while_running,
        Exited: running.exited,
        Emptied: running.emptied,
        Hung: running.hung,
        Gathered: running.gathered,
        Progressed: running.progressed,
        Signalled: stopping.signalled_while_running,
    },
    Phase.GATHERING: {
        Wanted: running.wanted_while_running,
        Exited: running.exited_while_gathering,
        Emptied: running.emptied_while_judging,
        Gathered: running.gathered_before_stop,
        Signalled: stopping.signalled_while_running,
    },
    Phase.JUDGING: {
        Wanted: running.wanted_while_judging,
        LinkBack: running.link_back_while_judging,
        Emptied: running.emptied_while_judging,
        Progressed: running.progressed,
        Signalled: stopping.signalled_while_judging,
    },
    Phase.STOPPING: {
        Ran: stopping.ran_too_late,
        NotRun: stopping.not_run_at_all,
        Exited: stopping.exited,
        Emptied: stopping.emptied,
        Wanted: stopping.wanted_while_stopping,
        Signalled: stopping.signalled_while_stopping,
    },
    Phase.KILLING: {
        Ran: stopping.ran_too_late,
        NotRun: stopping.not_run_at_all,
        Exited: stopping.exited,
        Emptied: stopping.emptied,
        Wanted: stopping.wanted_while_stopping,
        Signalled: stopping.signalled_while_stopping,
    },
    Phase.LEFT: {},
}

_AT_ITS_END: Final[Mapping[Phase, Callable[[Turn], None]]] = {
    Phase.GATE: gate.not_healed,
    Phase.PAUSING: gate.come_to_gate,
    Phase.GATHERING: running.no_evidence,
    Phase.JUDGING: running.settle,
    Phase.STOPPING: stopping.kill,
    Phase.KILLING: stopping.unkillable,
}
"""What happens when the time of a phase is over."""


class Session:
    """``state`` may be read by whoever runs the session, and is changed by ``step`` alone."""

    def __init__(self) -> None:
        self.state = State()

    def step(self, now_ns: int, given: Given) -> tuple[Order, ...]:
        turn = Turn(now_ns, self.state)
        if not isinstance(given, _BEFORE_THE_TIME):
            _do_what_is_due(turn)
        _take(turn, given)
        _do_what_is_due(turn)
        self.state = turn.state
        return tuple(turn.orders)

    def next_deadline_ns(self) -> int | None:
        """When something is to be done even if nothing is given: give a ``Tick`` then."""
        return _next(self.state)

    def leave_again(self) -> tuple[Order, ...]:
        """The orders of a session that had left, where its supervisor was ended before it could: what that
        was to do.
        """
        state = self.state
        if state.status is None:
            return ()
        return Keep(counts=state.counts), Leave(status=state.status, why="its supervisor was ended")

    def is_written(self, now_ns: int, given: Given) -> bool:
        """Whether that belongs into the journal."""
        due_ns = self.next_deadline_ns()
        return not isinstance(given, Tick) or (due_ns is not None and due_ns <= now_ns)


def _next(state: State) -> int | None:
    return min((each for each in (state.due_ns, state.evidence_due_ns) if each is not None), default=None)


def _do_what_is_due(turn: Turn) -> None:
    """Each thing once: what follows from it begins now, so that one that slept too long skips nothing."""
    while (due_ns := _next(turn.state)) is not None and due_ns <= turn.now_ns:
        if due_ns == turn.state.evidence_due_ns:
            running.no_evidence(turn)
        else:
            turn.change(due_ns=None)
            _AT_ITS_END[turn.state.phase](turn)


def _take(turn: Turn, given: Given) -> None:
    if isinstance(given, Began):
        beginning.began(turn, given)
        return
    if isinstance(given, _OF_ONE_RUN) and given.run != turn.state.run:
        return
    _note(turn, given)
    handler = _TABLE[turn.state.phase].get(type(given))
    if handler is not None:
        handler(turn, given)


def _note(turn: Turn, given: Given) -> None:
    """What holds in any phase."""
    if isinstance(given, LinkLost):
        turn.change(link=Link.DOWN, is_fresh=False)
    elif isinstance(given, LinkBack):
        turn.change(link=Link.UP, is_fresh=False, job=given.job)
    elif isinstance(given, Wanted):
        state = turn.state
        if given != state.wanted and explains(given, state.run):
            turn.change(blame=given, blamed_ns=turn.now_ns)
        turn.change(wanted=given, is_fresh=True)
