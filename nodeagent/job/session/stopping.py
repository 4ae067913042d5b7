"""The end of a run that is ended: asked, then killed, then reported as unkillable."""

from nodeagent.job.inputs import Emptied, Exited, NotRun, Ran, Signalled, Wanted
from nodeagent.job.model import Wish, Word
from nodeagent.job.orders import Kill, Terminate
from nodeagent.job.session.ending import conclude, is_blamed
from nodeagent.job.session.session_state import Cause, Phase, Turn

KILLED_WITHIN_S = 5.0
"""What a KILL has not ended by then is held by the kernel."""


def stop(turn: Turn, cause: Cause) -> None:
    """Also what a command left behind gets its grace: ranks of a dead launcher may write a checkpoint."""
    turn.change(cause=cause)
    turn.order(Terminate(run=turn.state.run))
    turn.enter(Phase.STOPPING, turn.state.policy.grace_s)


def kill(turn: Turn) -> None:
    turn.order(Kill(run=turn.state.run))
    turn.enter(Phase.KILLING, KILLED_WITHIN_S)


def unkillable(turn: Turn) -> None:
    turn.print_message("processes of the job are left that cannot be killed")
    conclude(turn, Cause.SIGNALLED if turn.state.cause is Cause.SIGNALLED else Cause.UNKILLABLE)


def ran_too_late(turn: Turn, given: Ran) -> None:
    """It was to stop before it was known to run."""
    turn.change(process=given.process, executions=turn.state.executions + 1)
    turn.report(Word.STARTED, turn.state.why.value)
    again = Kill if turn.state.phase is Phase.KILLING else Terminate
    turn.order(again(run=turn.state.run))


def not_run_at_all(turn: Turn, given: NotRun) -> None:
    emptied(turn, Emptied(run=given.run))


def exited(turn: Turn, given: Exited) -> None:
    """Others of its tree have the rest of the grace."""
    turn.change(failure=given.failure)


def emptied(turn: Turn, _: Emptied) -> None:
    turn.change(emptied=True)
    conclude(turn, turn.state.cause or Cause.EXITED)


def wanted_while_stopping(turn: Turn, given: Wanted) -> None:
    """A fault is found while the run ends for another reason: then the fault decides. The scheduler's word
    is above it."""
    state = turn.state
    if state.cause is Cause.SIGNALLED:
        return
    if given.wish is Wish.LEAVE and state.may_be_sent_away:
        turn.change(cause=Cause.SENT_AWAY)
    elif given.wish is Wish.STOP and given.run == state.run and state.policy.in_place:
        turn.change(cause=Cause.ASKED)


def signalled_while_waiting(turn: Turn, given: Signalled) -> None:
    """No process of the job is there. Where the daemon has kept it from running, the others may have failed
    for want of it.
    """
    _note(turn, given)
    state = turn.state
    held = state.wanted is not None and state.wanted.wish in (Wish.HOLD, Wish.STOP)
    waits_for_chips = state.policy.in_step and not state.is_watched_only and held
    conclude(turn, Cause.ASKED if waits_for_chips else Cause.SIGNALLED)


def signalled_while_running(turn: Turn, given: Signalled) -> None:
    """A job that is only watched gets each signal itself, all the time that it takes, and its own status. In
    a step it gets TERM once: Slurm tells each node, and the loop on the batch host may tell it, too.
    """
    state = turn.state
    _note(turn, given)
    if state.is_watched_only and state.policy.in_step:
        if state.signal is None:
            turn.order(Terminate(run=state.run, alone=True))
    elif state.is_watched_only:
        turn.order(Terminate(run=turn.state.run, number=given.number, alone=True))
    else:
        stop(turn, Cause.SIGNALLED)


def signalled_while_judging(turn: Turn, given: Signalled) -> None:
    """The command's own failure stands in a step: another node may have failed for it."""
    _note(turn, given)
    cause = Cause.EXITED if turn.state.policy.in_step else Cause.SIGNALLED
    if turn.state.emptied:
        conclude(turn, cause)
    else:
        stop(turn, cause)


def signalled_while_stopping(turn: Turn, given: Signalled) -> None:
    """The command of a step is stopped for its own reason: the signal says only that another node has failed,
    or that the job ends, which Slurm and the loop both tell.
    """
    second = turn.state.signal is not None
    _note(turn, given)
    if not turn.state.policy.in_step or turn.state.cause is None:
        turn.change(cause=Cause.SIGNALLED)
    if second and not turn.state.policy.in_step and turn.state.phase is Phase.STOPPING:
        kill(turn)


def _note(turn: Turn, given: Signalled) -> None:
    """What the daemon reported long ago explains no end of now."""
    blame = turn.state.blame if is_blamed(turn.state, turn.now_ns) else None
    turn.change(signal=given.number, blame=blame)
