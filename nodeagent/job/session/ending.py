"""The end of a run, and of the session: what the table of verdicts decides is reported, counted and done."""

from dataclasses import replace

from nodeagent.job.failure.known import Known
from nodeagent.job.inputs import Wanted
from nodeagent.job.model import SECOND_NS, Wish, Word
from nodeagent.job.session.session_state import Cause, Phase, State, Turn
from nodeagent.job.session.verdict import Ending, Verdict, judge, own_status

HARDWARE_HANDLINGS = frozenset({"RESTART_JOB", "STOP_RESET_RESTART", "RESCHEDULE"})
"""The daemon's words for what is to become of the work on a chip whose fault ends it."""


def known_of(state: State) -> Known:
    """Loaded only here: what reads texts costs time, which a command that does not fail need not spend."""
    if state.failure is None or own_status(state.failure) == 0:
        return Known()
    from nodeagent.job.failure import exits

    return exits.known(state.failure)


def verdict_of(state: State, cause: Cause, known: Known) -> Verdict:
    """What only outlived an earlier run is no end of this one: in a step, too, it goes on to its run."""
    wanted = state.wanted
    policy = replace(state.policy, in_step=False) if state.is_reported else state.policy
    ending = Ending(
        cause=cause,
        failure=state.failure,
        known=known,
        signal=state.signal,
        progressed=state.progressed,
        blame=state.blame,
        isolated=wanted is not None and wanted.isolated,
        by_operator=wanted is not None and wanted.by_operator,
        watched_only=state.is_watched_only,
    )
    return judge(ending, policy, state.counts)


def explains(wanted: Wanted, run: int) -> bool:
    """Whether a failure of that run may come from what the daemon reports."""
    return (
        wanted.wish is Wish.LEAVE
        or (wanted.wish is not Wish.RUN and wanted.run == run)
        or wanted.handling in HARDWARE_HANDLINGS
    )


def is_blamed(state: State, now_ns: int) -> bool:
    """Whether the daemon has reported something that explains a failure now."""
    return state.blame is not None and now_ns - state.blamed_ns <= state.policy.blame_s * SECOND_NS


def conclude(turn: Turn, cause: Cause) -> None:
    """Nothing of the run is left, or nothing of it will be ended: run again, or leave."""
    turn.change(cause=cause)
    known = known_of(turn.state)
    verdict = verdict_of(turn.state, cause, known)
    _report(turn, cause, verdict, known)
    turn.keep(verdict.counts)
    if verdict.status is not None:
        if not turn.state.is_watched_only and cause is not Cause.SIGNALLED and verdict.status != 0:
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
    turn.enter(Phase.PAUSING, verdict.pause_s)


def _report(turn: Turn, cause: Cause, verdict: Verdict, known: Known) -> None:
    state = turn.state
    if state.phase in (Phase.NEW, Phase.GATE, Phase.PAUSING):
        return
    if state.is_reported and cause is not Cause.UNKILLABLE:
        return
    status = None if state.failure is None else own_status(state.failure)
    if cause is Cause.UNKILLABLE or not (state.emptied or cause is Cause.EXITED):
        turn.report(Word.UNKILLABLE, verdict.why, status=status)
        return
    by_order = cause in (Cause.ASKED, Cause.SENT_AWAY)
    turn.report(
        Word.STOPPED if by_order else Word.EXITED,
        verdict.why,
        status=status,
        evidence={"class": known.kind.value, "line": known.line} if known.line and not by_order else {},
    )
