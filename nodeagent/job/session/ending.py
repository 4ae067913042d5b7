"""The end of a run: it is asked to end, then killed, then reported as unkillable; and what follows from it.

``conclude`` takes the decision of the table (``decision``), reports and counts it, and runs the command again
or leaves.
"""

from dataclasses import replace
from typing import Final

from nodeagent.job.model import SECOND_NS, KnownFailure, RunEvent, RunRequest, Wish
from nodeagent.job.role import OnSignal
from nodeagent.job.session.decision import RunDecision, RunEnding, decide, own_status
from nodeagent.job.session.state import EndCause, SessionPhase, SessionState, Transition
from nodeagent.job.session.values import (
    CalledOff,
    CommandExited,
    Emptied,
    Kill,
    NotRun,
    Ran,
    Signalled,
    Terminate,
)

HARDWARE_HANDLINGS = frozenset({"RESTART_JOB", "STOP_RESET_RESTART", "RESCHEDULE"})
"""Handlings of a fault that ends the work on its chip."""


def known_of(state: SessionState) -> KnownFailure:
    """Loaded only here: what reads texts costs time, which a command that does not fail need not spend."""
    if state.failure is None or own_status(state.failure) == 0:
        return KnownFailure()
    from nodeagent.job.session import failures

    return failures.known(state.failure)


def decision_of(state: SessionState, cause: EndCause, known: KnownFailure) -> RunDecision:
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
        not_ready=state.not_ready,
        isolated=wanted is not None and wanted.isolated,
        wanted_for=wanted.why if wanted is not None else "",
        by_operator=wanted is not None and wanted.by_operator,
        sub_health=state.sub_health,
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


_KEPT_FROM_RUNNING: Final = frozenset({EndCause.NOT_HEALED, EndCause.NOT_READY})


def conclude(transition: Transition, cause: EndCause) -> None:
    """Nothing of the run is left, or nothing of it will be ended: run again, or leave."""
    transition.change(cause=cause)
    known = known_of(transition.state)
    decision = decision_of(transition.state, cause, known)
    _report_end(transition, cause, decision, known)
    transition.keep(decision.counts)
    if decision.status is not None:
        is_own = transition.state.role.acts or cause in _KEPT_FROM_RUNNING
        if is_own and cause is not EndCause.SIGNALLED and decision.status != 0:
            transition.print_message(f"leaves with status {decision.status}: {decision.why}")
        transition.leave(
            decision.status,
            decision.why,
            fault=decision.fault,
            next_why=decision.next_why,
            pause_s=decision.pause_s,
        )
        return
    state = transition.state
    if not state.is_reported:
        transition.print_message(f"run {state.run} has ended ({decision.row}): {decision.why}")
    transition.next_run(state.why if state.is_reported else decision.next_why)
    transition.enter(SessionPhase.PAUSING, decision.pause_s)


def _report_end(transition: Transition, cause: EndCause, decision: RunDecision, known: KnownFailure) -> None:
    state = transition.state
    if state.phase in (SessionPhase.NEW, SessionPhase.GATE, SessionPhase.PAUSING):
        return
    if state.is_reported and cause is not EndCause.UNKILLABLE:
        return
    status = None if state.failure is None else own_status(state.failure)
    if cause is EndCause.UNKILLABLE or not (state.emptied or cause is EndCause.EXITED):
        transition.report(RunEvent.UNKILLABLE, decision.why, status=status)
        return
    by_order = cause in _ENDS_A_RUN
    transition.report(
        RunEvent.STOPPED if by_order else RunEvent.EXITED,
        decision.why,
        status=status,
        evidence={"class": known.kind.value, "line": known.line} if known.line and not by_order else {},
    )


_ENDS_A_RUN: Final = frozenset(
    {
        EndCause.ASKED,
        EndCause.SENT_AWAY,
        EndCause.SUSPENDED,
        EndCause.SUB_HEALTH,
        EndCause.SIGNALLED,
    }
)
"""The supervisor has ended the run: how its command failed then is of no meaning."""

KILLED_WITHIN_S = 5.0
"""A process that KILL has not ended by then is stuck in the kernel."""


def stop(transition: Transition, cause: EndCause) -> None:
    """Also what a command left behind gets its grace: ranks of a dead launcher may write a checkpoint."""
    transition.change(cause=cause)
    transition.add(Terminate(run=transition.state.run))
    transition.enter(SessionPhase.STOPPING, transition.state.policy.grace_s)


def kill(transition: Transition) -> None:
    transition.add(Kill(run=transition.state.run))
    transition.enter(SessionPhase.KILLING, KILLED_WITHIN_S)


def unkillable(transition: Transition) -> None:
    transition.print_message("processes of the job are left that cannot be killed")
    conclude(
        transition,
        EndCause.SIGNALLED if transition.state.cause is EndCause.SIGNALLED else EndCause.UNKILLABLE,
    )


def ran_too_late(transition: Transition, given: Ran) -> None:
    """It was to stop before it was known to run."""
    transition.change(process=given.process, executions=transition.state.executions + 1)
    transition.report(RunEvent.STARTED, transition.state.why.value)
    again = Kill if transition.state.phase is SessionPhase.KILLING else Terminate
    transition.add(again(run=transition.state.run))


def not_run_at_all(transition: Transition, given: NotRun | CalledOff) -> None:
    emptied_while_stopping(transition, Emptied(run=given.run))


def exited_while_stopping(transition: Transition, given: CommandExited) -> None:
    """Others of its tree have the rest of the grace."""
    transition.change(failure=given.failure)


def emptied_while_stopping(transition: Transition, _: Emptied) -> None:
    transition.change(emptied=True)
    conclude(transition, transition.state.cause or EndCause.EXITED)


def wanted_while_stopping(transition: Transition, given: RunRequest) -> None:
    """A fault is found while the run ends for another reason: then the fault decides. A signal of the
    scheduler comes before it."""
    state = transition.state
    if state.cause is EndCause.SIGNALLED:
        return
    if given.wish is Wish.LEAVE and state.may_be_sent_away:
        transition.change(cause=EndCause.SENT_AWAY)
    elif given.wish is Wish.STOP and given.run == state.run and state.policy.in_place:
        transition.change(cause=EndCause.ASKED)


def signalled_while_waiting(transition: Transition, given: Signalled) -> None:
    """No process of the job is there. Where the daemon has kept it from running, the others may have failed
    for want of it.
    """
    _note_signal(transition, given)
    state = transition.state
    is_kept_waiting = state.wanted is not None and state.wanted.wish in (Wish.HOLD, Wish.STOP)
    waits_for_chips = is_kept_waiting and state.role.acts and not state.role.signal_ends_job
    conclude(transition, EndCause.ASKED if waits_for_chips else EndCause.SIGNALLED)


def signalled_while_running(transition: Transition, given: Signalled) -> None:
    """A job that is only watched gets each signal itself, all the time that it takes, and its own status. In
    a step it gets TERM once: Slurm signals each node, and so may the loop on the batch host.
    """
    state = transition.state
    _note_signal(transition, given)
    if state.role.on_signal is OnSignal.STOP:
        stop(transition, EndCause.SIGNALLED)
    elif state.role.on_signal is OnSignal.PASS_EACH:
        transition.add(Terminate(run=state.run, number=given.number, alone=True))
    elif state.signal is None:
        transition.add(Terminate(run=state.run, alone=True))


def signalled_while_judging(transition: Transition, given: Signalled) -> None:
    """In a step the command's own failure decides: other nodes may have failed because of it."""
    _note_signal(transition, given)
    cause = EndCause.SIGNALLED if transition.state.role.signal_ends_job else EndCause.EXITED
    if transition.state.emptied:
        conclude(transition, cause)
    else:
        stop(transition, cause)


def signalled_while_stopping(transition: Transition, given: Signalled) -> None:
    """The command of a step is stopped for its own reason: the signal only means that another node has
    failed, or that the job ends, which both Slurm and the loop signal.
    """
    second = transition.state.signal is not None
    _note_signal(transition, given)
    ends_job = transition.state.role.signal_ends_job
    if ends_job or transition.state.cause is None:
        transition.change(cause=EndCause.SIGNALLED)
    if second and ends_job and transition.state.phase is SessionPhase.STOPPING:
        kill(transition)


def _note_signal(transition: Transition, given: Signalled) -> None:
    """What the daemon reported long ago explains no end of now."""
    blame = transition.state.blame if is_blamed(transition.state, transition.now_ns) else None
    transition.change(signal=given.number, blame=blame)
