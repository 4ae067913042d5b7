"""The beginning of a supervisor: of a new placement, or anew in the middle of one.

A placement is new where the journal is empty, its session has left, or the count of placements has changed.
Otherwise the session goes on where the journal ends. What outlived the earlier supervisor is ended first.
"""

from nodeagent.job.inputs import Began
from nodeagent.job.orders import Keep
from nodeagent.job.session.ending import conclude
from nodeagent.job.session.gate import come_to_gate
from nodeagent.job.session.running import await_verdict, report_hang
from nodeagent.job.session.session_state import Cause, Link, Phase, State, Turn
from nodeagent.job.session.stopping import stop


def began(turn: Turn, given: Began) -> None:
    state = turn.state
    left = state.phase in (Phase.NEW, Phase.LEFT)
    if left or state.boot_id != given.boot_id or state.counts.schedule != given.counts.schedule:
        _new_placement(turn, given)
    else:
        _go_on(turn, given)


def _new_placement(turn: Turn, given: Began) -> None:
    """Numbers of reports go on: nobody takes a new one for an old one."""
    turn.state = State(
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


def _go_on(turn: Turn, given: Began) -> None:
    """The counts of the journal are at least as new as those that were kept. A signal was for the earlier
    supervisor: whoever starts another wants the job to run. A start that nobody saw happen is made again, if
    the daemon still wants it."""
    turn.change(policy=given.policy, link=Link.UNKNOWN, is_fresh=False)
    turn.order(Keep(counts=turn.state.counts))
    report_hang(turn)
    phase, cause = turn.state.phase, turn.state.cause
    if cause is None or turn.state.signal is not None:
        cause = Cause.ORPHANED
    turn.change(signal=None)
    if phase in (Phase.GATE, Phase.PAUSING):
        if given.survivors:
            _end_what_is_left(turn)
        elif phase is Phase.GATE:
            come_to_gate(turn)
    elif phase is Phase.STARTING and not given.survivors:
        come_to_gate(turn)
    elif given.survivors:
        if phase is Phase.STARTING:
            turn.change(executions=turn.state.executions + 1)
        stop(turn, cause)
    elif phase is Phase.JUDGING:
        turn.change(emptied=True)
        await_verdict(turn)
    else:
        turn.change(emptied=True)
        conclude(turn, cause)


def _end_what_is_left(turn: Turn) -> None:
    """No run is made now: it is of the run before."""
    turn.change(run=turn.state.run - 1, is_reported=True)
    stop(turn, Cause.ORPHANED)
