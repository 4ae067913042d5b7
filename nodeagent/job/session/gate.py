"""Before each run: the gate, and the start.

A run begins only if the daemon wants it to. Where the daemon cannot be asked the gate is open, unless the
policy needs the daemon, or the daemon last wanted the job not to run. A job that is only watched has no gate.
"""

import errno

from nodeagent.job.inputs import Failure, LinkBack, LinkLost, NotRun, Ran, Wanted
from nodeagent.job.model import Why, Wish, Word
from nodeagent.job.orders import Start
from nodeagent.job.policy import environment
from nodeagent.job.session.ending import conclude
from nodeagent.job.session.session_state import Cause, Link, Phase, State, Turn
from nodeagent.job.session.verdict import own_status

NOT_FOUND_STATUS = 127
NOT_EXECUTABLE_STATUS = 126
"""As a shell gives them: POSIX, "Exit Status for Commands"."""

_MAY_PASS = frozenset(
    {
        errno.EAGAIN,
        errno.EBUSY,
        errno.EINTR,
        errno.EIO,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.ESTALE,
        errno.ETIMEDOUT,
        errno.ETXTBSY,
    }
)
"""No memory, no process, or storage that does not answer now: fork(2), execve(2)."""


def come_to_gate(turn: Turn) -> None:
    turn.enter(Phase.GATE, turn.state.policy.heal_timeout_s)
    look_again(turn)


def look_again(turn: Turn) -> None:
    """At the gate: something has changed that may open it."""
    state = turn.state
    if may_run(state):
        begin(turn)
    elif _is_held_by_operator(state):
        turn.change(due_ns=None)
    elif state.due_ns is None:
        turn.change(due_ns=turn.after(state.policy.heal_timeout_s))


def may_run(state: State) -> bool:
    if state.is_watched_only and not state.policy.need_daemon:
        return True
    wanted = state.wanted
    if state.link is Link.UP:
        return wanted is not None and state.is_fresh and wanted.wish is Wish.RUN and wanted.run >= state.run
    if state.link is Link.UNKNOWN or state.policy.need_daemon:
        return False
    return wanted is None or wanted.wish is Wish.RUN


def begin(turn: Turn) -> None:
    """The daemon may count further: it has called off a run of which this supervisor never heard."""
    state = turn.state
    if state.link is Link.UP and state.wanted is not None and state.wanted.run > state.run:
        turn.change(run=state.wanted.run)
        state = turn.state
    turn.enter(Phase.STARTING)
    turn.change(blame=None)
    variables = environment.of_run(
        run=state.run, execution=state.executions + 1, why=state.why, counts=state.counts, job=state.job
    )
    turn.order(Start(run=state.run, environment=variables))


def wanted_at_gate(turn: Turn, given: Wanted) -> None:
    """Also while a pause goes on."""
    if given.wish is Wish.LEAVE and turn.state.may_be_sent_away:
        conclude(turn, Cause.SENT_AWAY)
    elif given.wish is Wish.STOP and given.run == turn.state.run and turn.state.policy.in_place:
        call_off(turn, given)
    elif turn.state.phase is Phase.GATE:
        look_again(turn)


def call_off(turn: Turn, given: Wanted) -> None:
    """The run was allowed, and is to stop before it has begun: nothing of it is left."""
    turn.report(Word.STOPPED, "it had not begun")
    turn.next_run(Why.ORDERED if given.by_operator else Why.HEALED)
    come_to_gate(turn)


def link_at_gate(turn: Turn, _: LinkLost | LinkBack) -> None:
    look_again(turn)


def not_healed(turn: Turn) -> None:
    conclude(turn, Cause.NOT_HEALED)


def ran(turn: Turn, given: Ran) -> None:
    turn.change(process=given.process, executions=turn.state.executions + 1)
    turn.enter(Phase.RUNNING)
    turn.report(Word.STARTED, turn.state.why.value)


def not_run(turn: Turn, given: NotRun) -> None:
    """What may pass is a failure as any other. Else the same would come of another attempt: the command is
    not there, or is no program.
    """
    missing = given.error in (errno.ENOENT, errno.ENOTDIR)
    failure = Failure(status=NOT_FOUND_STATUS if missing else NOT_EXECUTABLE_STATUS)
    turn.change(failure=failure, emptied=True)
    turn.print_message(f"the command cannot be run: {given.why}")
    if given.error in _MAY_PASS:
        conclude(turn, Cause.EXITED)
        return
    turn.report(Word.EXITED, given.why, status=own_status(failure))
    turn.leave(own_status(failure), given.why)


def _is_held_by_operator(state: State) -> bool:
    wanted = state.wanted
    return wanted is not None and wanted.by_operator and wanted.wish in (Wish.HOLD, Wish.STOP)
