"""While the command runs: hangs, progress, what the daemon wants, and the command's own end."""

from dataclasses import replace
from typing import Final

from nodeagent.job.model import SECOND_NS, Counts, HangMode, RunEvent, RunRequest, Wish
from nodeagent.job.session import sub_health
from nodeagent.job.session.decision import own_status
from nodeagent.job.session.ending import conclude, explains, is_blamed, stop
from nodeagent.job.session.state import DaemonLinkState, EndCause, SessionPhase, Transition
from nodeagent.job.session.values import (
    Armed,
    CommandExited,
    Emptied,
    Gather,
    Gathered,
    HangStage,
    Hung,
    LinkBack,
    Progressed,
    RunFailure,
    Slowed,
    SlowStage,
)

EVIDENCE_S = 15.0
EVIDENCE_SLACK_S = 5.0
"""Evidence that is later than this is not waited for."""

ROW_ENDS_NS = 24 * 3600 * SECOND_NS
"""Without any source of progress, a row of hangs ends after so long without a suspicion."""


# ---------------------------------------------------------------------- the daemon


def wanted_while_running(transition: Transition, given: RunRequest) -> None:
    """Also while a run starts, or evidence of its hang is gathered: then it is the fault's case, no hang."""
    cause = asks_for(transition, given)
    if cause is not None:
        transition.print_message(f"run {transition.state.run} is stopped: {_reason(given)}; {_NEXT[cause]}")
        transition.change(hung=None, evidence_due_ns=None)
        stop(transition, cause)
    else:
        sub_health.wanted_while_running(transition)


_NEXT: Final = {
    EndCause.ASKED: "it runs again here once the daemon allows it",
    EndCause.SENT_AWAY: "the job leaves this node",
}


def _reason(given: RunRequest) -> str:
    fault = f"{given.chip or 'the node'} has {given.code}" if given.code else ""
    if given.why and given.code not in given.why:
        return f"{fault} ({given.why})" if fault else given.why
    return given.why or fault or "the daemon requests it"


def asks_for(transition: Transition, given: RunRequest) -> EndCause | None:
    """What that means for the run that is made. A wish for an earlier run is past."""
    state = transition.state
    if given.wish is Wish.LEAVE and state.may_be_sent_away:
        return EndCause.SENT_AWAY
    if given.wish is Wish.STOP and given.run == state.run and state.policy.in_place:
        return EndCause.ASKED
    return None


# ---------------------------------------------------------------------- the command's own end


def exited(transition: Transition, given: CommandExited) -> None:
    report_hang(transition)
    transition.change(failure=given.failure, cause=EndCause.EXITED)
    state = transition.state
    if own_status(given.failure) == 0 or not state.role.acts:
        conclude(transition, EndCause.EXITED)
    elif is_blamed(state, transition.now_ns):
        settle(transition)
    else:
        await_verdict(transition)


def await_verdict(transition: Transition) -> None:
    policy = transition.state.policy
    waits_for_daemon = policy.need_daemon and transition.state.link is not DaemonLinkState.UP
    transition.enter(
        SessionPhase.JUDGING, policy.heal_timeout_s if waits_for_daemon else policy.verdict_wait_s
    )


def emptied(transition: Transition, given: Emptied) -> None:
    """Nothing is left, and how the command ended is unknown."""
    transition.change(emptied=True)
    exited(transition, CommandExited(run=given.run, failure=RunFailure()))


def link_back_while_judging(transition: Transition, _: LinkBack) -> None:
    if transition.state.policy.need_daemon:
        transition.enter(SessionPhase.JUDGING, transition.state.policy.verdict_wait_s)


def wanted_while_judging(transition: Transition, given: RunRequest) -> None:
    cause = asks_for(transition, given)
    if cause is not None:
        transition.change(cause=cause)
        settle(transition)
    elif explains(given, transition.state.run):
        settle(transition)


def emptied_while_judging(transition: Transition, _: Emptied) -> None:
    transition.change(emptied=True)


def settle(transition: Transition) -> None:
    """The wait for the daemon is over. What the command left behind is ended with it."""
    cause = transition.state.cause or EndCause.EXITED
    if cause is EndCause.EXITED and not is_blamed(transition.state, transition.now_ns):
        transition.change(blame=None)
    if transition.state.emptied:
        conclude(transition, cause)
    else:
        stop(transition, cause)


# ---------------------------------------------------------------------- hangs


def hung(transition: Transition, given: Hung) -> None:
    state = transition.state
    if state.policy.hang is HangMode.OFF:
        return
    if given.what in (HangStage.CLEARED, HangStage.DROPPED):
        transition.change(suspicion_ns=transition.now_ns)
        transition.report(RunEvent.CLEARED, given.why)
        return
    _end_old_row(transition)
    transition.change(suspicion_ns=transition.now_ns)
    if given.what is HangStage.SUSPECTED:
        transition.report(RunEvent.SUSPECTED, given.why)
    elif given.acts and state.policy.hang is HangMode.RESTART:
        transition.change(hung=given, cause=EndCause.SUSPENDED)
        transition.print_message(
            f"run {state.run} hangs ({given.why}); it is stopped as soon as the evidence is gathered"
        )
        transition.enter(SessionPhase.GATHERING, EVIDENCE_S + EVIDENCE_SLACK_S)
        transition.add(Gather(run=state.run, within_s=EVIDENCE_S, run_ends=True))
    else:
        transition.change(hung=given, evidence_due_ns=transition.after(EVIDENCE_S + EVIDENCE_SLACK_S))
        transition.add(Gather(run=state.run, within_s=EVIDENCE_S))


def gathered(transition: Transition, given: Gathered) -> None:
    """The evidence of a hang is there, of a run that is not stopped for it."""
    report_hang(transition, given)


def report_hang(transition: Transition, given: Gathered | None = None) -> None:
    """A hang that was confirmed and not yet reported, with its evidence, or without."""
    confirmed = transition.state.hung
    if confirmed is None:
        return
    evidence = {"path": given.path, "digest": given.digest} if given is not None and given.path else {}
    transition.report(
        RunEvent.SUSPENDED, confirmed.why, evidence={**evidence, "since_s": f"{confirmed.since_s:g}"}
    )
    transition.change(hung=None, evidence_due_ns=None)


def gathered_before_stop(transition: Transition, given: Gathered | None) -> None:
    report_hang(transition, given)
    if transition.state.emptied:
        conclude(transition, EndCause.SUSPENDED)
    else:
        stop(transition, EndCause.SUSPENDED)


def no_evidence(transition: Transition) -> None:
    if transition.state.phase is SessionPhase.GATHERING:
        gathered_before_stop(transition, None)
    else:
        report_hang(transition)


def exited_while_gathering(transition: Transition, given: CommandExited) -> None:
    """What the evidence is gathered from may end by it; only a command that is done did not hang."""
    if own_status(given.failure) == 0:
        transition.change(hung=None)
        exited(transition, given)
    else:
        transition.change(failure=given.failure)


def slow(transition: Transition, given: Slowed) -> None:
    """Reported, and nothing is done: the run goes on."""
    what = RunEvent.SLOW if given.what is SlowStage.FOUND else RunEvent.KEEPS_UP
    transition.print_message(f"run {transition.state.run}: {given.why}")
    transition.report(what, given.why, evidence={**given.evidence, "who": given.who})


def armed(transition: Transition, given: Armed) -> None:
    counts = transition.state.counts
    transition.keep(replace(counts, start=given.start.longest(counts.start)))


def _end_old_row(transition: Transition) -> None:
    state = transition.state
    if state.counts.best is None and transition.now_ns - state.suspicion_ns >= ROW_ENDS_NS:
        transition.keep(replace(state.counts, hangs=0))


# ---------------------------------------------------------------------- progress


def progressed(transition: Transition, given: Progressed) -> None:
    """Running up to the old best again is no progress. It is a checkpoint all the same."""
    counts = transition.state.counts
    if counts.best is None or given.number > counts.best:
        _count_progress(transition, counts, given.number)
    if given.is_checkpoint:
        sub_health.saved(transition)


def _count_progress(transition: Transition, counts: Counts, number: int) -> None:
    transition.change(progressed=True)
    transition.keep(
        replace(
            counts,
            best=number,
            placements=0 if transition.state.policy.refill else counts.placements,
            placements_in_row=0,
            retries=0,
            hangs=0,
            signature="",
            same_errors=0,
        )
    )
