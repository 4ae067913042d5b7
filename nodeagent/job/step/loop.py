"""The loop of a step: values in, orders out. It does no I/O and knows no clock.

    ask ──> run ──> ended ──> run ──> ended ──> pause ──> ask ──> run ...

A signal ends it: before a run at once, during a run after the scheduler's step has ended. It never runs the
command again then.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final

from nodeagent.job.inputs import Signalled
from nodeagent.job.model import Counts, Status, Why
from nodeagent.job.orders import Keep, Print
from nodeagent.job.step.counts import merged
from nodeagent.job.step.model import (
    Allocated,
    Ask,
    Began,
    End,
    Ended,
    Given,
    Leave,
    Order,
    Plan,
    Run,
    Wait,
    Waited,
    Wish,
)
from nodeagent.job.step.nodes import chosen, needed
from nodeagent.job.step.verdict import Case, Verdict, judge, waited


class Phase(str, Enum):
    NEW = "new"
    ASKING = "asking"
    RUNNING = "running"
    PAUSING = "pausing"
    LEFT = "left"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """``run`` is the one that is made, or the next; ``first_run`` that of this placement. ``first`` is how
    many nodes the job had at its begin. ``whys`` and ``waited`` are of the next run.
    """

    phase: Phase = Phase.NEW
    wish: Wish = field(default_factory=Wish)
    counts: Counts = field(default_factory=Counts)
    first: int = 0
    run: int = 1
    first_run: int = 1
    nodes: tuple[str, ...] = ()
    left_out: frozenset[str] = frozenset()
    doubtful: frozenset[str] = frozenset()
    whys: Mapping[str, Why] = field(default_factory=dict)
    waited: Mapping[str, float] = field(default_factory=dict)
    placements: int | None = None
    silent: int = 0
    signal: int | None = None


Decided = tuple[State, tuple[Order, ...]]


def decide(state: State, given: Given) -> Decided:
    """What is not for the phase (a signal after the end) changes nothing."""
    handler = _TABLE[state.phase].get(type(given))
    return (state, ()) if handler is None else handler(state, given)


def _began(_: State, given: Began) -> Decided:
    state = State(
        phase=Phase.ASKING,
        wish=given.wish,
        counts=given.counts,
        first=len(given.nodes),
        run=given.first_run,
        first_run=given.first_run,
        placements=given.wish.placements,
    )
    return state, (Keep(counts=given.counts), Ask())


def _allocated(state: State, given: Allocated) -> Decided:
    if given.ends:
        return _left(state, Leave(status=_ENDED_STATUS, why="the scheduler is ending the job"))
    nodes = chosen(
        state.wish,
        given.nodes,
        first=state.first,
        before=state.nodes,
        left_out=state.left_out,
        doubtful=state.doubtful,
    )
    if nodes is None:
        return _too_few(state, given)
    plan = Plan(
        run=state.run,
        execution=state.run - state.first_run + 1,
        nodes=nodes,
        whys={each: _why(state, each) for each in nodes},
        waited_s={each: state.waited[each] for each in nodes if each in state.waited},
    )
    messages = () if set(nodes) == set(state.nodes) else (Print(text=_of_nodes(state, nodes, given)),)
    return replace(state, phase=Phase.RUNNING, nodes=nodes), (*messages, Run(plan=plan))


def _why(state: State, node: str) -> Why:
    if state.run == state.first_run:
        return Why.FIRST
    return state.whys.get(node, Why.PEER)


def _of_nodes(state: State, nodes: tuple[str, ...], given: Allocated) -> str:
    spares = [each for each in given.nodes if each not in nodes and each not in state.left_out]
    kept = f", spare: {', '.join(spares)}" if spares else ""
    return f"run {state.run} on {', '.join(nodes)}{kept}"


def _too_few(state: State, given: Allocated) -> Decided:
    usable = len([each for each in given.nodes if each not in state.left_out])
    least, _ = needed(state.wish, state.first)
    return _elsewhere(state, f"{usable} usable nodes are left, and the job needs {least}")


def _elsewhere(state: State, why: str) -> Decided:
    """Costs a placement; the scheduler is not asked for one that the job does not have."""
    counts = state.counts
    if state.placements is not None and counts.placements >= state.placements:
        why = f"{why}; all {state.placements} placements of the job are used"
        return _left(state, Leave(status=Status.GIVEN_UP.value, why=why))
    counts = replace(counts, placements=counts.placements + 1)
    left, orders = _left(replace(state, counts=counts), Leave(status=Status.RESCHEDULE.value, why=why))
    return left, (Keep(counts=counts), *orders)


def _ended(state: State, given: Ended) -> Decided:
    if given.run != state.run:
        return state, ()
    case = Case(
        nodes=state.nodes,
        ended=given,
        signal=state.signal,
        reruns=state.wish.reruns,
        silent_before=state.silent,
    )
    verdict = judge(case)
    counts = merged(state.counts, case.said, verdict.decided_by)
    known = [each.placements for each in case.said if each.placements is not None]
    after = replace(
        state,
        counts=counts,
        left_out=state.left_out | verdict.left_out,
        doubtful=verdict.doubtful,
        whys=verdict.whys,
        waited=waited(state.nodes, given, state.waited, verdict.pause_s),
        placements=min(known) if known else state.placements,
        silent=state.silent + 1 if verdict.doubtful and not any(each.progressed for each in case.said) else 0,
    )
    kept: tuple[Order, ...] = () if counts == state.counts else (Keep(counts=counts),)
    if verdict.is_elsewhere:
        left, orders = _elsewhere(after, verdict.why)
        return left, (*kept, *orders)
    if verdict.status is not None:
        left, orders = _left(after, Leave(status=verdict.status, why=verdict.why))
        return left, (*kept, *orders)
    message = Print(text=f"run {state.run} has ended ({verdict.row}): {verdict.why}")
    again, orders = _again(replace(after, run=state.run + 1), verdict, given)
    return again, (*kept, message, *orders)


def _again(state: State, verdict: Verdict, ended: Ended) -> Decided:
    """After a pause the nodes may be others; else they are known from this run."""
    if verdict.pause_s > 0:
        return replace(state, phase=Phase.PAUSING), (Wait(seconds=verdict.pause_s),)
    return _allocated(state, Allocated(nodes=ended.nodes, ends=ended.ends))


def _waited(state: State, _: Waited) -> Decided:
    return replace(state, phase=Phase.ASKING), (Ask(),)


def _signalled(state: State, given: Signalled) -> Decided:
    """Nothing of the job runs."""
    return _left(state, Leave(status=128 + given.number, why=f"signal {given.number}"))


def _signalled_while_running(state: State, given: Signalled) -> Decided:
    """The step is ended once: asked again, srun kills it."""
    ends = () if state.signal is not None else (End(),)
    return replace(state, signal=given.number), ends


def _left(state: State, leave: Leave) -> Decided:
    return replace(state, phase=Phase.LEFT), (leave,)


_ENDED_STATUS: Final = 128 + 15
"""As if the scheduler's TERM had come already."""

_TABLE: Final[Mapping[Phase, Mapping[type, Callable[[State, Any], Decided]]]] = {
    Phase.NEW: {Began: _began},
    Phase.ASKING: {Allocated: _allocated, Signalled: _signalled},
    Phase.RUNNING: {Ended: _ended, Signalled: _signalled_while_running},
    Phase.PAUSING: {Waited: _waited, Signalled: _signalled},
    Phase.LEFT: {},
}
