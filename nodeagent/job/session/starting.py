"""Before each run: the gate, and the start.

A run begins only if the daemon wants it to. Where the daemon cannot be asked the gate is open, unless the
policy needs the daemon, or the daemon last wanted the job not to run. A job that is only watched has no gate.

The beginning of a supervisor: of a new placement, or anew in the middle of one.

A placement is new where the journal is empty, its session has left, or the count of placements has changed.
Otherwise the session goes on where the journal ends. What outlived the earlier supervisor is ended first.
"""

import errno

from nodeagent.job import model
from nodeagent.job.model import RunEvent, RunReason, RunRequest, Wish
from nodeagent.job.session.decision import own_status
from nodeagent.job.session.ending import conclude, stop
from nodeagent.job.session.running import await_verdict, report_hang
from nodeagent.job.session.state import EndCause, LinkState, SessionPhase, SessionState, Transition
from nodeagent.job.session.values import (
    CommandFailure,
    KeepCounts,
    LinkBack,
    LinkLost,
    NotRun,
    Ran,
    SessionBegan,
    Start,
)

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


def come_to_gate(turn: Transition) -> None:
    turn.enter(SessionPhase.GATE, turn.state.policy.heal_timeout_s)
    look_again(turn)


def look_again(turn: Transition) -> None:
    """At the gate: something has changed that may open it."""
    state = turn.state
    if may_run(state):
        begin(turn)
    elif _is_held_by_operator(state):
        turn.change(due_ns=None)
    elif state.due_ns is None:
        turn.change(due_ns=turn.after(state.policy.heal_timeout_s))


def may_run(state: SessionState) -> bool:
    if not state.role.acts and not state.policy.need_daemon:
        return True
    wanted = state.wanted
    if state.link is LinkState.UP:
        return wanted is not None and state.is_fresh and wanted.wish is Wish.RUN and wanted.run >= state.run
    if state.link is LinkState.UNKNOWN or state.policy.need_daemon:
        return False
    return wanted is None or wanted.wish is Wish.RUN


def begin(turn: Transition) -> None:
    """The daemon may count further: it has called off a run of which this supervisor never heard."""
    state = turn.state
    if state.link is LinkState.UP and state.wanted is not None and state.wanted.run > state.run:
        turn.change(run=state.wanted.run)
        state = turn.state
    turn.enter(SessionPhase.STARTING)
    turn.change(blame=None)
    variables = model.variables_of_run(
        run=state.run, execution=state.executions + 1, why=state.why, counts=state.counts, job=state.job
    )
    turn.order(Start(run=state.run, environment=variables))


def wanted_at_gate(turn: Transition, given: RunRequest) -> None:
    """Also while a pause goes on."""
    if given.wish is Wish.LEAVE and turn.state.may_be_sent_away:
        conclude(turn, EndCause.SENT_AWAY)
    elif given.wish is Wish.STOP and given.run == turn.state.run and turn.state.policy.in_place:
        call_off(turn, given)
    elif turn.state.phase is SessionPhase.GATE:
        look_again(turn)


def call_off(turn: Transition, given: RunRequest) -> None:
    """The run was allowed, and is to stop before it has begun: nothing of it is left."""
    turn.report(RunEvent.STOPPED, "it had not begun")
    turn.next_run(RunReason.ORDERED if given.by_operator else RunReason.HEALED)
    come_to_gate(turn)


def link_at_gate(turn: Transition, _: LinkLost | LinkBack) -> None:
    look_again(turn)


def not_healed(turn: Transition) -> None:
    conclude(turn, EndCause.NOT_HEALED)


def ran(turn: Transition, given: Ran) -> None:
    turn.change(process=given.process, executions=turn.state.executions + 1)
    turn.enter(SessionPhase.RUNNING)
    turn.report(RunEvent.STARTED, turn.state.why.value)


def not_run(turn: Transition, given: NotRun) -> None:
    """What may pass is a failure as any other. Else the same would come of another attempt: the command is
    not there, or is no program.
    """
    missing = given.error in (errno.ENOENT, errno.ENOTDIR)
    failure = CommandFailure(status=NOT_FOUND_STATUS if missing else NOT_EXECUTABLE_STATUS)
    turn.change(failure=failure, emptied=True)
    turn.print_message(f"the command cannot be run: {given.why}")
    if given.error in _MAY_PASS:
        conclude(turn, EndCause.EXITED)
        return
    turn.report(RunEvent.EXITED, given.why, status=own_status(failure))
    turn.leave(own_status(failure), given.why)


def _is_held_by_operator(state: SessionState) -> bool:
    wanted = state.wanted
    return wanted is not None and wanted.by_operator and wanted.wish in (Wish.HOLD, Wish.STOP)


def began(turn: Transition, given: SessionBegan) -> None:
    state = turn.state
    left = state.phase in (SessionPhase.NEW, SessionPhase.LEFT)
    if left or state.boot_id != given.boot_id or state.counts.schedule != given.counts.schedule:
        _new_placement(turn, given)
    else:
        _go_on(turn, given)


def _new_placement(turn: Transition, given: SessionBegan) -> None:
    """Numbers of reports go on: nobody takes a new one for an old one."""
    turn.state = SessionState(
        policy=given.policy,
        counts=given.counts,
        boot_id=given.boot_id,
        run=given.run,
        executions=given.executions,
        why=given.why,
        reports=turn.state.reports,
        suspicion_ns=turn.now_ns,
    )
    if given.survivors:
        _end_what_is_left(turn)
    else:
        come_to_gate(turn)


def _go_on(turn: Transition, given: SessionBegan) -> None:
    """The counts of the journal are at least as new as those that were kept. A signal was for the earlier
    supervisor: whoever starts another wants the job to run. A start that nobody saw happen is made again, if
    the daemon still wants it."""
    turn.change(policy=given.policy, link=LinkState.UNKNOWN, is_fresh=False)
    turn.order(KeepCounts(counts=turn.state.counts))
    report_hang(turn)
    phase, cause = turn.state.phase, turn.state.cause
    if cause is None or turn.state.signal is not None:
        cause = EndCause.ORPHANED
    turn.change(signal=None)
    if phase in (SessionPhase.GATE, SessionPhase.PAUSING):
        if given.survivors:
            _end_what_is_left(turn)
        elif phase is SessionPhase.GATE:
            come_to_gate(turn)
    elif phase is SessionPhase.STARTING and not given.survivors:
        come_to_gate(turn)
    elif given.survivors:
        if phase is SessionPhase.STARTING:
            turn.change(executions=turn.state.executions + 1)
        stop(turn, cause)
    elif phase is SessionPhase.JUDGING:
        turn.change(emptied=True)
        await_verdict(turn)
    else:
        turn.change(emptied=True)
        conclude(turn, cause)


def _end_what_is_left(turn: Transition) -> None:
    """No run is made now: it is of the run before."""
    turn.change(run=turn.state.run - 1, is_reported=True)
    stop(turn, EndCause.ORPHANED)
