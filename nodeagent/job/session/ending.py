"""The end of a run, and of the session: what the table of verdicts decides is reported, counted and done.

The end of a run that is ended: asked, then killed, then reported as unkillable.
"""

from dataclasses import replace

from nodeagent.job.model import SECOND_NS, KnownFailure, RunEvent, RunRequest, Wish
from nodeagent.job.role import OnSignal
from nodeagent.job.session.decision import Decision, RunEnding, decide, own_status
from nodeagent.job.session.state import EndCause, SessionPhase, SessionState, Transition
from nodeagent.job.session.values import CommandExited, Emptied, Kill, NotRun, Ran, Signalled, Terminate

HARDWARE_HANDLINGS = frozenset({"RESTART_JOB", "STOP_RESET_RESTART", "RESCHEDULE"})
"""The daemon's words for what is to become of the work on a chip whose fault ends it."""


def known_of(state: SessionState) -> KnownFailure:
    """Loaded only here: what reads texts costs time, which a command that does not fail need not spend."""
    if state.failure is None or own_status(state.failure) == 0:
        return KnownFailure()
    from nodeagent.job.session import failures

    return failures.known(state.failure)


def decision_of(state: SessionState, cause: EndCause, known: KnownFailure) -> Decision:
    """What only outlived an earlier run is no end of this one: in a step, too, it goes on to its run."""
    wanted = state.wanted
    policy = replace(state.policy, in_step=False) if state.is_reported else state.policy
    ending = RunEnding(
        cause=cause,
        failure=state.failure,
        known=known,
        signal=state.signal,
        progressed=state.progressed,
        blame=state.blame,
        isolated=wanted is not None and wanted.isolated,
        by_operator=wanted is not None and wanted.by_operator,
    )
    return decide(ending, policy, state.counts)


def explains(wanted: RunRequest, run: int) -> bool:
    """Whether a failure of that run may come from what the daemon reports."""
    return (
        wanted.wish is Wish.LEAVE
        or (wanted.wish is not Wish.RUN and wanted.run == run)
        or wanted.handling in HARDWARE_HANDLINGS
    )


def is_blamed(state: SessionState, now_ns: int) -> bool:
    """Whether the daemon has reported something that explains a failure now."""
    return state.blame is not None and now_ns - state.blamed_ns <= state.policy.blame_s * SECOND_NS


def conclude(turn: Transition, cause: EndCause) -> None:
    """Nothing of the run is left, or nothing of it will be ended: run again, or leave."""
    turn.change(cause=cause)
    known = known_of(turn.state)
    verdict = decision_of(turn.state, cause, known)
    _report_end(turn, cause, verdict, known)
    turn.keep(verdict.counts)
    if verdict.status is not None:
        if turn.state.role.acts and cause is not EndCause.SIGNALLED and verdict.status != 0:
            turn.print_message(f"leaves with status {verdict.status}: {verdict.why}")
        turn.leave(
            verdict.status,
            verdict.why,
            fault=verdict.fault,
            next_why=verdict.next_why,
            pause_s=verdict.pause_s,
        )
        return
    state = turn.state
    if not state.is_reported:
        turn.print_message(f"run {state.run} has ended ({verdict.row}): {verdict.why}")
    turn.next_run(state.why if state.is_reported else verdict.next_why)
    turn.enter(SessionPhase.PAUSING, verdict.pause_s)


def _report_end(turn: Transition, cause: EndCause, verdict: Decision, known: KnownFailure) -> None:
    state = turn.state
    if state.phase in (SessionPhase.NEW, SessionPhase.GATE, SessionPhase.PAUSING):
        return
    if state.is_reported and cause is not EndCause.UNKILLABLE:
        return
    status = None if state.failure is None else own_status(state.failure)
    if cause is EndCause.UNKILLABLE or not (state.emptied or cause is EndCause.EXITED):
        turn.report(RunEvent.UNKILLABLE, verdict.why, status=status)
        return
    by_order = cause in (EndCause.ASKED, EndCause.SENT_AWAY)
    turn.report(
        RunEvent.STOPPED if by_order else RunEvent.EXITED,
        verdict.why,
        status=status,
        evidence={"class": known.kind.value, "line": known.line} if known.line and not by_order else {},
    )


KILLED_WITHIN_S = 5.0
"""What a KILL has not ended by then is held by the kernel."""


def stop(turn: Transition, cause: EndCause) -> None:
    """Also what a command left behind gets its grace: ranks of a dead launcher may write a checkpoint."""
    turn.change(cause=cause)
    turn.order(Terminate(run=turn.state.run))
    turn.enter(SessionPhase.STOPPING, turn.state.policy.grace_s)


def kill(turn: Transition) -> None:
    turn.order(Kill(run=turn.state.run))
    turn.enter(SessionPhase.KILLING, KILLED_WITHIN_S)


def unkillable(turn: Transition) -> None:
    turn.print_message("processes of the job are left that cannot be killed")
    conclude(turn, EndCause.SIGNALLED if turn.state.cause is EndCause.SIGNALLED else EndCause.UNKILLABLE)


def ran_too_late(turn: Transition, given: Ran) -> None:
    """It was to stop before it was known to run."""
    turn.change(process=given.process, executions=turn.state.executions + 1)
    turn.report(RunEvent.STARTED, turn.state.why.value)
    again = Kill if turn.state.phase is SessionPhase.KILLING else Terminate
    turn.order(again(run=turn.state.run))


def not_run_at_all(turn: Transition, given: NotRun) -> None:
    emptied_while_stopping(turn, Emptied(run=given.run))


def exited_while_stopping(turn: Transition, given: CommandExited) -> None:
    """Others of its tree have the rest of the grace."""
    turn.change(failure=given.failure)


def emptied_while_stopping(turn: Transition, _: Emptied) -> None:
    turn.change(emptied=True)
    conclude(turn, turn.state.cause or EndCause.EXITED)


def wanted_while_stopping(turn: Transition, given: RunRequest) -> None:
    """A fault is found while the run ends for another reason: then the fault decides. The scheduler's word
    is above it."""
    state = turn.state
    if state.cause is EndCause.SIGNALLED:
        return
    if given.wish is Wish.LEAVE and state.may_be_sent_away:
        turn.change(cause=EndCause.SENT_AWAY)
    elif given.wish is Wish.STOP and given.run == state.run and state.policy.in_place:
        turn.change(cause=EndCause.ASKED)


def signalled_while_waiting(turn: Transition, given: Signalled) -> None:
    """No process of the job is there. Where the daemon has kept it from running, the others may have failed
    for want of it.
    """
    _note_signal(turn, given)
    state = turn.state
    held = state.wanted is not None and state.wanted.wish in (Wish.HOLD, Wish.STOP)
    waits_for_chips = held and state.role.acts and not state.role.signal_ends_job
    conclude(turn, EndCause.ASKED if waits_for_chips else EndCause.SIGNALLED)


def signalled_while_running(turn: Transition, given: Signalled) -> None:
    """A job that is only watched gets each signal itself, all the time that it takes, and its own status. In
    a step it gets TERM once: Slurm tells each node, and the loop on the batch host may tell it, too.
    """
    state = turn.state
    _note_signal(turn, given)
    if state.role.on_signal is OnSignal.STOP:
        stop(turn, EndCause.SIGNALLED)
    elif state.role.on_signal is OnSignal.PASS_EACH:
        turn.order(Terminate(run=state.run, number=given.number, alone=True))
    elif state.signal is None:
        turn.order(Terminate(run=state.run, alone=True))


def signalled_while_judging(turn: Transition, given: Signalled) -> None:
    """The command's own failure stands in a step: another node may have failed for it."""
    _note_signal(turn, given)
    cause = EndCause.SIGNALLED if turn.state.role.signal_ends_job else EndCause.EXITED
    if turn.state.emptied:
        conclude(turn, cause)
    else:
        stop(turn, cause)


def signalled_while_stopping(turn: Transition, given: Signalled) -> None:
    """The command of a step is stopped for its own reason: the signal says only that another node has failed,
    or that the job ends, which Slurm and the loop both tell.
    """
    second = turn.state.signal is not None
    _note_signal(turn, given)
    ends_job = turn.state.role.signal_ends_job
    if ends_job or turn.state.cause is None:
        turn.change(cause=EndCause.SIGNALLED)
    if second and ends_job and turn.state.phase is SessionPhase.STOPPING:
        kill(turn)


def _note_signal(turn: Transition, given: Signalled) -> None:
    """What the daemon reported long ago explains no end of now."""
    blame = turn.state.blame if is_blamed(turn.state, turn.now_ns) else None
    turn.change(signal=given.number, blame=blame)
