"""The beginning of a session, and the gate before each run.

A placement is new if the journal is empty, its session has left, or the count of placements has changed.
Otherwise the session goes on where the journal ends, and what outlived the earlier supervisor is ended first.

A run begins only if the daemon wants it to. While the daemon cannot be asked the gate is open, unless the
policy needs the daemon, or the daemon last wanted the job not to run. A supervisor that only watches has no
gate. Between the gate and the start of the command lies what the run needs: as long as that is not there, it
waits (``RunNotReady``).
"""

import errno

from nodeagent.job import model
from nodeagent.job.model import RunEvent, RunReason, RunRequest, Wish
from nodeagent.job.session import sub_health
from nodeagent.job.session.decision import own_status
from nodeagent.job.session.ending import conclude, stop
from nodeagent.job.session.running import await_verdict, report_hang
from nodeagent.job.session.state import DaemonLinkState, EndCause, SessionPhase, SessionState, Transition
from nodeagent.job.session.values import (
    CalledOff,
    KeepCounts,
    LinkBack,
    LinkLost,
    NotRun,
    Ran,
    RunFailure,
    RunNotReady,
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


def come_to_gate(transition: Transition) -> None:
    transition.enter(SessionPhase.GATE, transition.state.policy.heal_timeout_s)
    look_again(transition)


def look_again(transition: Transition) -> None:
    """At the gate: something has changed that may open it."""
    state = transition.state
    if may_run(state) and sub_health.is_leaving(state):
        sub_health.leave(transition)
    elif may_run(state):
        begin(transition)
    elif _is_held_by_operator(state):
        transition.change(due_ns=None)
    elif state.due_ns is None:
        transition.change(due_ns=transition.after(state.policy.heal_timeout_s))


def may_run(state: SessionState) -> bool:
    if not state.role.acts and not state.policy.need_daemon:
        return True
    wanted = state.wanted
    if state.link is DaemonLinkState.UP:
        return wanted is not None and state.is_fresh and wanted.wish is Wish.RUN and wanted.run >= state.run
    if state.link is DaemonLinkState.UNKNOWN or state.policy.need_daemon:
        return False
    return wanted is None or wanted.wish is Wish.RUN


def begin(transition: Transition) -> None:
    """The daemon may count further: it has called off a run of which this supervisor never heard."""
    state = transition.state
    if state.link is DaemonLinkState.UP and state.wanted is not None and state.wanted.run > state.run:
        transition.change(run=state.wanted.run)
        state = transition.state
    transition.enter(SessionPhase.STARTING)
    transition.change(blame=None, not_ready=None)
    variables = model.variables_of_run(
        run=state.run, execution=state.executions + 1, why=state.why, counts=state.counts, job=state.job
    )
    transition.add(Start(run=state.run, environment=variables))


def wanted_at_gate(transition: Transition, given: RunRequest) -> None:
    """Also while a pause goes on."""
    if given.wish is Wish.LEAVE and transition.state.may_be_sent_away:
        conclude(transition, EndCause.SENT_AWAY)
    elif given.wish is Wish.STOP and given.run == transition.state.run and transition.state.policy.in_place:
        call_off(transition, given)
    elif transition.state.phase is SessionPhase.GATE:
        look_again(transition)


def call_off(transition: Transition, given: RunRequest) -> None:
    """The run was allowed, and is to stop before it has begun: nothing of it is left."""
    transition.report(RunEvent.STOPPED, "it had not begun")
    transition.next_run(RunReason.ORDERED if given.by_operator else RunReason.HEALED)
    come_to_gate(transition)


def link_at_gate(transition: Transition, _: LinkLost | LinkBack) -> None:
    look_again(transition)


def not_healed(transition: Transition) -> None:
    conclude(transition, EndCause.NOT_HEALED)


def ran(transition: Transition, given: Ran) -> None:
    transition.change(process=given.process, executions=transition.state.executions + 1)
    transition.enter(SessionPhase.RUNNING)
    if transition.state.executions > 1 or transition.state.not_ready is not None:
        transition.print_message(f"run {transition.state.run} begins ({transition.state.why.value})")
    transition.report(RunEvent.STARTED, transition.state.why.value)


def not_run(transition: Transition, given: NotRun) -> None:
    """What may pass is a failure as any other. Else the same would come of another attempt: the command is
    not there, or is no program.
    """
    missing = given.error in (errno.ENOENT, errno.ENOTDIR)
    failure = RunFailure(status=NOT_FOUND_STATUS if missing else NOT_EXECUTABLE_STATUS)
    transition.change(failure=failure, emptied=True)
    transition.print_message(f"the command cannot be run: {given.why}")
    if given.error in _MAY_PASS:
        conclude(transition, EndCause.EXITED)
        return
    transition.report(RunEvent.EXITED, given.why, status=own_status(failure))
    transition.leave(own_status(failure), given.why)


def not_ready(transition: Transition, given: RunNotReady) -> None:
    """It waits as long as for a chip that is repaired, from the first time on."""
    if transition.state.due_ns is None:
        transition.change(due_ns=transition.after(transition.state.policy.heal_timeout_s))
    transition.change(not_ready=given)
    transition.print_message(f"run {given.run} waits: {given.why}")


def called_off(transition: Transition, _: CalledOff) -> None:
    """By a signal, of a job that is only watched."""
    transition.change(emptied=True)
    conclude(transition, EndCause.SIGNALLED)


def never_ready(transition: Transition) -> None:
    conclude(transition, EndCause.NOT_READY)


def _is_held_by_operator(state: SessionState) -> bool:
    wanted = state.wanted
    return wanted is not None and wanted.by_operator and wanted.wish in (Wish.HOLD, Wish.STOP)


def began(transition: Transition, given: SessionBegan) -> None:
    state = transition.state
    left = state.phase in (SessionPhase.NEW, SessionPhase.LEFT)
    if left or state.boot_id != given.boot_id or state.counts.schedule != given.counts.schedule:
        _new_placement(transition, given)
    else:
        _go_on(transition, given)


def _new_placement(transition: Transition, given: SessionBegan) -> None:
    """Numbers of reports go on, so that a new one is not taken for an old one."""
    transition.state = SessionState(
        policy=given.policy,
        counts=given.counts,
        boot_id=given.boot_id,
        run=given.run,
        executions=given.executions,
        why=given.why,
        reports=transition.state.reports,
        suspicion_ns=transition.now_ns,
    )
    if given.survivors:
        _end_what_is_left(transition)
    else:
        come_to_gate(transition)


def _go_on(transition: Transition, given: SessionBegan) -> None:
    """The counts of the journal are at least as new as those that were kept. A signal was for the earlier
    supervisor: another one is started only to run the job. A start that was never confirmed is made again, if
    the daemon still wants it."""
    transition.change(policy=given.policy, link=DaemonLinkState.UNKNOWN, is_fresh=False)
    transition.add(KeepCounts(counts=transition.state.counts))
    report_hang(transition)
    phase, cause = transition.state.phase, transition.state.cause
    if cause is None or transition.state.signal is not None:
        cause = EndCause.ORPHANED
    transition.change(signal=None)
    if phase in (SessionPhase.GATE, SessionPhase.PAUSING):
        if given.survivors:
            _end_what_is_left(transition)
        elif phase is SessionPhase.GATE:
            come_to_gate(transition)
    elif phase is SessionPhase.STARTING and not given.survivors:
        come_to_gate(transition)
    elif given.survivors:
        if phase is SessionPhase.STARTING:
            transition.change(executions=transition.state.executions + 1)
        stop(transition, cause)
    elif phase is SessionPhase.JUDGING:
        transition.change(emptied=True)
        await_verdict(transition)
    else:
        transition.change(emptied=True)
        conclude(transition, cause)


def _end_what_is_left(transition: Transition) -> None:
    """No run is made now: it is of the run before."""
    transition.change(run=transition.state.run - 1, is_reported=True)
    stop(transition, EndCause.ORPHANED)
