"""While the command runs: hangs, progress, what the daemon wants, and the command's own end."""

from dataclasses import replace

from nodeagent.job.model import SECOND_NS, HangMode, RunEvent, RunRequest, Wish
from nodeagent.job.session.decision import own_status
from nodeagent.job.session.ending import conclude, explains, is_blamed, stop
from nodeagent.job.session.state import EndCause, LinkState, SessionPhase, Transition
from nodeagent.job.session.values import (
    CommandExited,
    CommandFailure,
    Emptied,
    Gather,
    Gathered,
    HangStage,
    Hung,
    LinkBack,
    Progressed,
)

EVIDENCE_S = 15.0
EVIDENCE_SLACK_S = 5.0
"""Evidence that is later than this is not waited for."""

ROW_ENDS_NS = 24 * 3600 * SECOND_NS
"""Without any source of progress, a row of hangs ends after so long without a suspicion."""


# ---------------------------------------------------------------------- the daemon


def wanted_while_running(turn: Transition, given: RunRequest) -> None:
    """Also while a run starts, or evidence of its hang is gathered: then it is the fault's case, no hang."""
    cause = asks_for(turn, given)
    if cause is not None:
        turn.change(hung=None, evidence_due_ns=None)
        stop(turn, cause)


def asks_for(turn: Transition, given: RunRequest) -> EndCause | None:
    """What that means for the run that is made. A wish for an earlier run is past."""
    state = turn.state
    if given.wish is Wish.LEAVE and state.may_be_sent_away:
        return EndCause.SENT_AWAY
    if given.wish is Wish.STOP and given.run == state.run and state.policy.in_place:
        return EndCause.ASKED
    return None


# ---------------------------------------------------------------------- the command's own end


def exited(turn: Transition, given: CommandExited) -> None:
    report_hang(turn)
    turn.change(failure=given.failure, cause=EndCause.EXITED)
    state = turn.state
    if own_status(given.failure) == 0 or not state.role.acts:
        conclude(turn, EndCause.EXITED)
    elif is_blamed(state, turn.now_ns):
        settle(turn)
    else:
        await_verdict(turn)


def await_verdict(turn: Transition) -> None:
    policy = turn.state.policy
    waits_for_daemon = policy.need_daemon and turn.state.link is not LinkState.UP
    turn.enter(SessionPhase.JUDGING, policy.heal_timeout_s if waits_for_daemon else policy.verdict_wait_s)


def emptied(turn: Transition, given: Emptied) -> None:
    """Nothing is left, and nobody saw how the command ended."""
    turn.change(emptied=True)
    exited(turn, CommandExited(run=given.run, failure=CommandFailure()))


def link_back_while_judging(turn: Transition, _: LinkBack) -> None:
    if turn.state.policy.need_daemon:
        turn.enter(SessionPhase.JUDGING, turn.state.policy.verdict_wait_s)


def wanted_while_judging(turn: Transition, given: RunRequest) -> None:
    cause = asks_for(turn, given)
    if cause is not None:
        turn.change(cause=cause)
        settle(turn)
    elif explains(given, turn.state.run):
        settle(turn)


def emptied_while_judging(turn: Transition, _: Emptied) -> None:
    turn.change(emptied=True)


def settle(turn: Transition) -> None:
    """The daemon has had its say. What the command left behind does not outlive it."""
    cause = turn.state.cause or EndCause.EXITED
    if cause is EndCause.EXITED and not is_blamed(turn.state, turn.now_ns):
        turn.change(blame=None)
    if turn.state.emptied:
        conclude(turn, cause)
    else:
        stop(turn, cause)


# ---------------------------------------------------------------------- hangs


def hung(turn: Transition, given: Hung) -> None:
    state = turn.state
    if state.policy.hang is HangMode.OFF:
        return
    if given.what in (HangStage.CLEARED, HangStage.DROPPED):
        turn.change(suspicion_ns=turn.now_ns)
        turn.report(RunEvent.CLEARED, given.why)
        return
    _end_old_row(turn)
    turn.change(suspicion_ns=turn.now_ns)
    if given.what is HangStage.SUSPECTED:
        turn.report(RunEvent.SUSPECTED, given.why)
    elif given.acts and state.policy.hang is HangMode.RESTART:
        turn.change(hung=given, cause=EndCause.SUSPENDED)
        turn.print_message(
            f"run {state.run} hangs ({given.why}); it is stopped as soon as the evidence is gathered"
        )
        turn.enter(SessionPhase.GATHERING, EVIDENCE_S + EVIDENCE_SLACK_S)
        turn.order(Gather(run=state.run, within_s=EVIDENCE_S, run_ends=True))
    else:
        turn.change(hung=given, evidence_due_ns=turn.after(EVIDENCE_S + EVIDENCE_SLACK_S))
        turn.order(Gather(run=state.run, within_s=EVIDENCE_S))


def gathered(turn: Transition, given: Gathered) -> None:
    """The evidence of a hang is there, of a run that is not stopped for it."""
    report_hang(turn, given)


def report_hang(turn: Transition, given: Gathered | None = None) -> None:
    """A hang that was confirmed and not yet reported, with its evidence, or without."""
    confirmed = turn.state.hung
    if confirmed is None:
        return
    evidence = {"path": given.path, "digest": given.digest} if given is not None and given.path else {}
    turn.report(RunEvent.SUSPENDED, confirmed.why, evidence={**evidence, "since_s": f"{confirmed.since_s:g}"})
    turn.change(hung=None, evidence_due_ns=None)


def gathered_before_stop(turn: Transition, given: Gathered | None) -> None:
    report_hang(turn, given)
    if turn.state.emptied:
        conclude(turn, EndCause.SUSPENDED)
    else:
        stop(turn, EndCause.SUSPENDED)


def no_evidence(turn: Transition) -> None:
    if turn.state.phase is SessionPhase.GATHERING:
        gathered_before_stop(turn, None)
    else:
        report_hang(turn)


def exited_while_gathering(turn: Transition, given: CommandExited) -> None:
    """What the evidence is gathered from may end by it; only a command that is done did not hang."""
    if own_status(given.failure) == 0:
        turn.change(hung=None)
        exited(turn, given)
    else:
        turn.change(failure=given.failure)


def _end_old_row(turn: Transition) -> None:
    state = turn.state
    if state.counts.best is None and turn.now_ns - state.suspicion_ns >= ROW_ENDS_NS:
        turn.keep(replace(state.counts, hangs=0))


# ---------------------------------------------------------------------- progress


def progressed(turn: Transition, given: Progressed) -> None:
    """Running up to the old best again is no progress."""
    counts = turn.state.counts
    if counts.best is not None and given.number <= counts.best:
        return
    turn.change(progressed=True)
    turn.keep(
        replace(
            counts,
            best=given.number,
            placements=0 if turn.state.policy.refill else counts.placements,
            placements_in_row=0,
            retries=0,
            hangs=0,
            signature="",
        )
    )
