"""The loop of a step: inputs in, effects out. It does no I/O and knows no clock.

    ask ──> run ──> ended ──> run ──> ended ──> pause ──> ask ──> run ...

A signal ends it: before a run at once, during a run after the scheduler's step has ended. The command is not
run again then.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final

from nodeagent.job.model import Counts, ExitStatus, RunReason
from nodeagent.job.session.values import KeepCounts, Leave, Print, Signalled
from nodeagent.job.step.decision import StepCase, StepDecision, decide, merged, waited
from nodeagent.job.step.values import (
    Allocated,
    AskScheduler,
    EndRun,
    RunPlan,
    StartRun,
    StepBegan,
    StepEffect,
    StepEnded,
    StepInput,
    StepOptions,
    Wait,
    Waited,
)


def needed(wish: StepOptions, first: int) -> tuple[int, int]:
    """(the least, the most) nodes of a run; ``first`` is how many the job had at its begin."""
    most = first if wish.nodes is None else wish.nodes
    return most if wish.at_least is None else wish.at_least, most


def chosen(
    wish: StepOptions,
    has: Sequence[str],
    *,
    first: int,
    before: Sequence[str] = (),
    left_out: Collection[str] = (),
    doubtful: Collection[str] = (),
    replacements: int | None = None,
) -> tuple[str, ...] | None:
    """The nodes of the next run, in the order of the allocation; None where fewer are left than are needed.

    ``has`` are those that the job has now, ``first`` is how many it had at its begin. ``before`` are those of
    the run before: they stay, for what they have prepared is there. ``left_out`` are not to be used again.
    ``doubtful`` have reported nothing in the run before: a spare is better. ``replacements``: so many may
    take the place of another; None: all.
    """
    usable = [each for each in has if each not in left_out]
    if before and replacements is not None:
        spares = [each for each in usable if each not in before][:replacements]
        usable = [each for each in usable if each in before or each in spares]
    least, most = needed(wish, first)
    if len(usable) < least:
        return None

    def rank(node: str) -> tuple[bool, bool]:
        return node in doubtful, node not in before

    best = sorted(usable, key=rank)[:most]
    return tuple(each for each in usable if each in best)


class StepPhase(str, Enum):
    NEW = "new"
    ASKING = "asking"
    RUNNING = "running"
    PAUSING = "pausing"
    LEFT = "left"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepState:
    """``run`` is the one that is made, or the next; ``first_run`` that of this placement. ``first`` is how
    many nodes the job had at its begin. ``whys`` and ``waited`` are of the next run.
    """

    phase: StepPhase = StepPhase.NEW
    wish: StepOptions = field(default_factory=StepOptions)
    counts: Counts = field(default_factory=Counts)
    first: int = 0
    run: int = 1
    first_run: int = 1
    nodes: tuple[str, ...] = ()
    left_out: frozenset[str] = frozenset()
    doubtful: frozenset[str] = frozenset()
    whys: Mapping[str, RunReason] = field(default_factory=dict)
    waited: Mapping[str, float] = field(default_factory=dict)
    placements: int | None = None
    silent: int = 0
    signal: int | None = None


Decided = tuple[StepState, tuple[StepEffect, ...]]


def step(state: StepState, given: StepInput) -> Decided:
    """What is not for the phase (a signal after the end) changes nothing."""
    handler = _TABLE[state.phase].get(type(given))
    return (state, ()) if handler is None else handler(state, given)


def _began(_: StepState, given: StepBegan) -> Decided:
    state = StepState(
        phase=StepPhase.ASKING,
        wish=given.wish,
        counts=given.counts,
        first=len(given.nodes),
        run=given.first_run,
        first_run=given.first_run,
        placements=given.wish.placements,
    )
    return state, (KeepCounts(counts=given.counts), AskScheduler())


def _allocated(state: StepState, given: Allocated) -> Decided:
    if given.ends:
        return _left(state, Leave(status=_ENDED_STATUS, why="the scheduler is ending the job"))
    nodes = chosen(
        state.wish,
        given.nodes,
        first=state.first,
        before=state.nodes,
        left_out=state.left_out,
        doubtful=state.doubtful,
        replacements=_replacements_left(state),
    )
    if nodes is None:
        return _too_few(state, given)
    plan = RunPlan(
        run=state.run,
        execution=state.run - state.first_run + 1,
        nodes=nodes,
        whys={each: _why(state, each) for each in nodes},
        waited_s={each: state.waited[each] for each in nodes if each in state.waited},
    )
    messages = () if set(nodes) == set(state.nodes) else (Print(text=_of_nodes(state, nodes, given)),)
    counts = state.counts
    if state.nodes:
        replaced = len(set(nodes) - set(state.nodes))
        counts = replace(counts, replacements=counts.replacements + replaced)
    kept = () if counts == state.counts else (KeepCounts(counts=counts),)
    after = replace(state, phase=StepPhase.RUNNING, nodes=nodes, counts=counts)
    return after, (*messages, *kept, StartRun(plan=plan))


def _replacements_left(state: StepState) -> int | None:
    most = state.wish.replacements
    return None if most is None else max(0, most - state.counts.replacements)


def _why(state: StepState, node: str) -> RunReason:
    if state.run == state.first_run:
        return RunReason.FIRST
    return state.whys.get(node, RunReason.PEER)


def _of_nodes(state: StepState, nodes: tuple[str, ...], given: Allocated) -> str:
    spares = [each for each in given.nodes if each not in nodes and each not in state.left_out]
    kept = f", spare: {', '.join(spares)}" if spares else ""
    return f"run {state.run} on {', '.join(nodes)}{kept}"


def _too_few(state: StepState, given: Allocated) -> Decided:
    usable = [each for each in given.nodes if each not in state.left_out]
    least, _ = needed(state.wish, state.first)
    if len(usable) >= least:
        why = f"the job has replaced as many nodes as its policy allows ({state.wish.replacements})"
        return _elsewhere(state, why)
    return _elsewhere(state, f"{len(usable)} usable nodes are left, and the job needs {least}")


def _elsewhere(state: StepState, why: str) -> Decided:
    """Costs a placement; the scheduler is not asked for one that the job does not have."""
    counts = state.counts
    if state.placements is not None and counts.placements >= state.placements:
        why = f"{why}; all {state.placements} placements of the job are used"
        return _left(state, Leave(status=ExitStatus.GIVEN_UP.value, why=why))
    counts = replace(counts, placements=counts.placements + 1)
    left, effects = _left(replace(state, counts=counts), Leave(status=ExitStatus.RESCHEDULE.value, why=why))
    return left, (KeepCounts(counts=counts), *effects)


def _ended(state: StepState, given: StepEnded) -> Decided:
    if given.run != state.run:
        return state, ()
    case = StepCase(
        nodes=state.nodes,
        ended=given,
        signal=state.signal,
        reruns=state.wish.reruns,
        silent_before=state.silent,
    )
    decision = decide(case)
    counts = merged(state.counts, case.reported, decision.decided_by)
    known = [each.placements for each in case.reported if each.placements is not None]
    after = replace(
        state,
        counts=counts,
        left_out=state.left_out | decision.left_out,
        doubtful=decision.doubtful,
        whys=decision.whys,
        waited=waited(state.nodes, given, state.waited, decision.pause_s),
        placements=min(known) if known else state.placements,
        silent=state.silent + 1
        if decision.doubtful and not any(each.progressed for each in case.reported)
        else 0,
    )
    kept: tuple[StepEffect, ...] = () if counts == state.counts else (KeepCounts(counts=counts),)
    if decision.is_elsewhere:
        left, effects = _elsewhere(after, decision.why)
        return left, (*kept, *effects)
    if decision.status is not None:
        left, effects = _left(after, Leave(status=decision.status, why=decision.why))
        return left, (*kept, *effects)
    message = Print(text=f"run {state.run} has ended ({decision.row}): {decision.why}")
    again, effects = _again(replace(after, run=state.run + 1), decision, given)
    return again, (*kept, message, *effects)


def _again(state: StepState, decision: StepDecision, ended: StepEnded) -> Decided:
    """After a pause the nodes may be others; else they are known from this run."""
    if decision.pause_s > 0:
        return replace(state, phase=StepPhase.PAUSING), (Wait(seconds=decision.pause_s),)
    return _allocated(state, Allocated(nodes=ended.nodes, ends=ended.ends))


def _waited(state: StepState, _: Waited) -> Decided:
    return replace(state, phase=StepPhase.ASKING), (AskScheduler(),)


def _signalled(state: StepState, given: Signalled) -> Decided:
    """Nothing of the job runs."""
    return _left(state, Leave(status=128 + given.number, why=f"signal {given.number}"))


def _signalled_while_running(state: StepState, given: Signalled) -> Decided:
    """The step is ended once: asked again, srun kills it."""
    ends = () if state.signal is not None else (EndRun(),)
    return replace(state, signal=given.number), ends


def _left(state: StepState, leave: Leave) -> Decided:
    return replace(state, phase=StepPhase.LEFT), (leave,)


_ENDED_STATUS: Final = 128 + 15
"""As if the scheduler's TERM had come already."""

_TABLE: Final[Mapping[StepPhase, Mapping[type, Callable[[StepState, Any], Decided]]]] = {
    StepPhase.NEW: {StepBegan: _began},
    StepPhase.ASKING: {Allocated: _allocated, Signalled: _signalled},
    StepPhase.RUNNING: {StepEnded: _ended, Signalled: _signalled_while_running},
    StepPhase.PAUSING: {Waited: _waited, Signalled: _signalled},
    StepPhase.LEFT: {},
}
