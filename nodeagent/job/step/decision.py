"""What becomes of a job after a run on several nodes, and what it costs. Pure; a table of rows.

The first row that fits decides. A hardware fault of one node explains what fails on the others, so its rows
come first. The exit status of srun decides nothing that the nodes have reported: srun ends with 0, too, if a
node was lost. Progress on one node is progress of the job; a failure, or a hang, costs one, on however many
nodes it shows.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from nodeagent.job.model import Counts, ExitStatus, RunReason
from nodeagent.job.step.values import NodeOutcome, StepEnded

SILENT_IN_ROW: Final = 6
"""So many runs in a row may end without any node saying why, a minute in all: a controller that was just
restarted refuses steps for some seconds."""

HELD_PAUSE_S: Final = 5.0
"""Before the next run where the others could not wait for a node whose command was never begun: else they
would be run again and again, as fast as they fail, for as long as its repair takes."""

_AWAY: Final = frozenset({ExitStatus.RESCHEDULE.value, ExitStatus.RESCHEDULE_ISOLATED.value})


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCase:
    """``nodes`` are those of the run. ``silent_before``: unexplained runs in a row before it."""

    nodes: tuple[str, ...]
    ended: StepEnded
    signal: int | None
    reruns: bool
    silent_before: int

    @property
    def reported(self) -> list[NodeOutcome]:
        """The outcomes in the order of the nodes."""
        outcomes = self.ended.outcomes
        return [outcomes[each] for each in self.nodes if each in outcomes]

    @property
    def lost(self) -> list[str]:
        return [each for each in self.nodes if each not in self.ended.nodes]

    @property
    def silent(self) -> list[str]:
        """Those that the job still has, and that have reported nothing."""
        return [each for each in self.nodes if each in self.ended.nodes and each not in self.ended.outcomes]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDecision:
    """``status`` None: the command runs again, after ``pause_s``. ``whys``: why, by node; a node that is not
    named runs again because of another one.

    ``is_elsewhere``: the job is to leave these nodes, which costs it a placement.
    ``left_out`` are not used again, ``doubtful`` only where there is no spare. ``decided_by`` is whose
    failure is counted.
    """

    row: str
    why: str
    status: int | None = None
    is_elsewhere: bool = False
    whys: Mapping[str, RunReason]
    pause_s: float = 0.0
    left_out: frozenset[str] = frozenset()
    doubtful: frozenset[str] = frozenset()
    decided_by: NodeOutcome | None = None


@dataclass(frozen=True, slots=True)
class StepRow:
    name: str
    fits: Callable[[StepCase], bool]
    decides: Callable[[StepCase], StepDecision]


def decide(case: StepCase) -> StepDecision:
    row = next(each for each in ROWS if each.fits(case))
    return row.decides(case)


def _leave(row: str, status: int, why: str, decided_by: NodeOutcome | None = None) -> StepDecision:
    return StepDecision(row=row, why=why, status=int(status), whys={}, decided_by=decided_by)


def _words(outcome: NodeOutcome) -> str:
    return f"{outcome.node}: {outcome.why or f'status {outcome.status}'}"


# ---------------------------------------------------------------------- the job has come to its end


def all_done(nodes: Iterable[str], outcomes: Mapping[str, NodeOutcome]) -> bool:
    return all(each in outcomes and outcomes[each].status == 0 for each in nodes)


def _is_done(case: StepCase) -> bool:
    return all_done(case.nodes, case.ended.outcomes)


def _done(_: StepCase) -> StepDecision:
    return _leave("done", ExitStatus.DONE, "done on every node")


def _is_signalled(case: StepCase) -> bool:
    return case.signal is not None


def _signalled(case: StepCase) -> StepDecision:
    number = case.signal or 0
    return _leave("the scheduler ends it", 128 + number, f"signal {number}")


# ---------------------------------------------------------------------- hardware


def _asks_again(case: StepCase) -> list[NodeOutcome]:
    return [each for each in case.reported if each.status == ExitStatus.RESTART_TOGETHER]


def _faulty(case: StepCase) -> list[NodeOutcome]:
    return [each for each in case.reported if each.fault and each.status in _AWAY]


def _healing(case: StepCase) -> list[NodeOutcome]:
    return [each for each in _asks_again(case) if each.fault]


def _has_fault(case: StepCase) -> bool:
    return bool(_faulty(case) or _healing(case))


def _of_fault(case: StepCase) -> StepDecision:
    """Those that are out of service are left out; the others wait until they are well."""
    faulty, healing = _faulty(case), _healing(case)
    return StepDecision(
        row="a fault",
        why="; ".join(_words(each) for each in (*faulty, *healing)),
        whys={each.node: each.next_why for each in healing},
        pause_s=HELD_PAUSE_S if any(each.waited_s > 0 for each in healing) else 0.0,
        left_out=frozenset(each.node for each in faulty),
    )


def _has_lost(case: StepCase) -> bool:
    return bool(case.lost) and case.reruns


def _of_loss(case: StepCase) -> StepDecision:
    lost = ", ".join(case.lost)
    return StepDecision(
        row="a node is lost", why=f"the job has lost {lost}", whys={}, left_out=frozenset(case.lost)
    )


# ---------------------------------------------------------------------- the job's own


def _with_status(case: StepCase, status: int) -> NodeOutcome | None:
    return next((each for each in case.reported if each.status == status), None)


def _has(status: ExitStatus) -> Callable[[StepCase], bool]:
    return lambda case: _with_status(case, status.value) is not None


def _leaves_with(row: str, status: ExitStatus) -> StepRow:
    def decides(case: StepCase) -> StepDecision:
        found = _with_status(case, status.value)
        assert found is not None
        return _leave(row, status, _words(found), found)

    return StepRow(row, _has(status), decides)


def _again(case: StepCase) -> StepDecision:
    asking = _asks_again(case)
    return StepDecision(
        row="again",
        why="; ".join(_words(each) for each in asking),
        whys={each.node: each.next_why for each in asking},
        pause_s=max(each.pause_s for each in asking),
        decided_by=asking[0],
    )


def _failed(case: StepCase) -> NodeOutcome | None:
    return next((each for each in case.reported if each.status != 0 and not each.signalled), None)


def _has_failed(case: StepCase) -> bool:
    return _failed(case) is not None


def _own(case: StepCase) -> StepDecision:
    failed = _failed(case)
    assert failed is not None
    return _leave("failed", failed.status, _words(failed), failed)


# ---------------------------------------------------------------------- no node has a reason


def _is_silent(case: StepCase) -> bool:
    return bool(case.silent) and case.reruns and case.silent_before < SILENT_IN_ROW


def _of_silence(case: StepCase) -> StepDecision:
    """A supervisor that was killed, a step that could not begin, a node that does not answer."""
    silent = ", ".join(case.silent)
    return StepDecision(
        row="silent",
        why=f"nothing is known of {silent}; srun ended with status {case.ended.status}",
        whys={},
        pause_s=2.0**case.silent_before,
        doubtful=frozenset(case.silent),
    )


def _is_silent_again(case: StepCase) -> bool:
    return bool(case.silent) and case.reruns


def _of_too_much_silence(case: StepCase) -> StepDecision:
    silent = ", ".join(case.silent)
    why = f"nothing is known of {silent}, after {case.silent_before} more unexplained runs"
    return StepDecision(row="silent too often", why=why, whys={}, is_elsewhere=True)


def _ended_one(case: StepCase) -> NodeOutcome | None:
    """A command may end with 0 when it is asked to end."""
    return next((each for each in case.reported if each.signalled and each.status != 0), None)


def _was_ended(case: StepCase) -> bool:
    return _ended_one(case) is not None


def _of_its_end(case: StepCase) -> StepDecision:
    """Only the step was ended, by a person: they do not want it again."""
    ended = _ended_one(case)
    assert ended is not None
    return _leave("ended by somebody", ended.status, _words(ended))


def _otherwise(case: StepCase) -> StepDecision:
    return _leave("nothing is known", case.ended.status or 1, f"srun ended with status {case.ended.status}")


ROWS: Final = (
    StepRow("done", _is_done, _done),
    StepRow("the scheduler ends it", _is_signalled, _signalled),
    StepRow("a fault", _has_fault, _of_fault),
    StepRow("a node is lost", _has_lost, _of_loss),
    _leaves_with("a bad policy", ExitStatus.BAD_POLICY),
    _leaves_with("given up", ExitStatus.GIVEN_UP),
    StepRow("again", lambda case: bool(_asks_again(case)), _again),
    _leaves_with("another placement", ExitStatus.RESCHEDULE),
    StepRow("failed", _has_failed, _own),
    StepRow("silent", _is_silent, _of_silence),
    StepRow("silent too often", _is_silent_again, _of_too_much_silence),
    StepRow("ended by somebody", _was_ended, _of_its_end),
    StepRow("nothing is known", lambda _: True, _otherwise),
)


def waited(
    nodes: Iterable[str], ended: StepEnded, before: Mapping[str, float], pause_s: float
) -> Mapping[str, float]:
    """How long each node was kept waiting in a row of runs in which its command never began, up to the next
    run.
    """
    found = {}
    for node in nodes:
        outcome = ended.outcomes.get(node)
        if outcome is not None and outcome.waited_s > 0:
            found[node] = before.get(node, 0.0) + outcome.waited_s + pause_s
    return found


def merged(base: Counts, outcomes: Iterable[NodeOutcome], decided_by: NodeOutcome | None) -> Counts:
    """``base`` are those with which each node began. What ``decided_by`` has counted is counted once; None:
    no failure decided.
    """
    of = list(outcomes)
    progressed = [each for each in of if each.progressed]
    bests = [each.counts.best for each in (*progressed, *of) if each.counts.best is not None]
    counts = base
    if progressed:
        refilled = min(each.counts.placements for each in progressed) < base.placements
        counts = replace(
            base,
            placements=0 if refilled else base.placements,
            placements_in_row=0,
            retries=0,
            hangs=0,
            signature="",
            same_errors=0,
        )
    for each in of:
        if each.counts.start is not None:
            counts = replace(counts, start=each.counts.start.longest(counts.start))
    if bests:
        counts = replace(counts, best=max(bests if base.best is None else (*bests, base.best)))
    return counts if decided_by is None else _with_cost(counts, base, decided_by)


def _with_cost(counts: Counts, base: Counts, outcome: NodeOutcome) -> Counts:
    """What this node has used up since its own last progress, or since the beginning of the run."""
    began = replace(base, placements_in_row=0, retries=0, hangs=0) if outcome.progressed else base
    after = outcome.counts
    return replace(
        counts,
        placements=counts.placements + max(0, after.placements - began.placements),
        placements_in_row=counts.placements_in_row
        + max(0, after.placements_in_row - began.placements_in_row),
        retries=counts.retries + max(0, after.retries - began.retries),
        hangs=counts.hangs + max(0, after.hangs - began.hangs),
        signature=after.signature,
        same_errors=after.same_errors,
    )
