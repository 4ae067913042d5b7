"""What becomes of a job after a run on several nodes: one pure function, a table of rows.

The first row that fits decides. A fault of the hardware on one node explains what fails on the others, so its
rows come first. The status of the scheduler's own starter decides nothing that the nodes know: srun ends
with 0, too, where a node was lost.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from nodeagent.job.model import Status, Why
from nodeagent.job.step.model import Ended, Outcome

SILENT_IN_ROW: Final = 6
"""So many runs in a row may end without any node saying why, a minute in all: a controller that was just
started anew refuses steps for some seconds."""

HELD_PAUSE_S: Final = 5.0
"""Before the next run where the others could not wait for a node whose command was never begun: else they
would be run again and again, as fast as they fail, for as long as its repair takes."""

_AWAY: Final = frozenset({Status.RESCHEDULE.value, Status.RESCHEDULE_ISOLATED.value})


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """``nodes`` are those of the run. ``silent_before``: so many runs in a row before it nobody explained."""

    nodes: tuple[str, ...]
    ended: Ended
    signal: int | None
    reruns: bool
    silent_before: int

    @property
    def said(self) -> list[Outcome]:
        """The outcomes in the order of the nodes."""
        outcomes = self.ended.outcomes
        return [outcomes[each] for each in self.nodes if each in outcomes]

    @property
    def lost(self) -> list[str]:
        return [each for each in self.nodes if each not in self.ended.nodes]

    @property
    def silent(self) -> list[str]:
        """Those that the job still has, and that have said nothing."""
        return [each for each in self.nodes if each in self.ended.nodes and each not in self.ended.outcomes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
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
    whys: Mapping[str, Why]
    pause_s: float = 0.0
    left_out: frozenset[str] = frozenset()
    doubtful: frozenset[str] = frozenset()
    decided_by: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    fits: Callable[[Case], bool]
    decides: Callable[[Case], Verdict]


def judge(case: Case) -> Verdict:
    row = next(each for each in ROWS if each.fits(case))
    return row.decides(case)


def _leave(row: str, status: int, why: str, decided_by: Outcome | None = None) -> Verdict:
    return Verdict(row=row, why=why, status=int(status), whys={}, decided_by=decided_by)


def _words(outcome: Outcome) -> str:
    return f"{outcome.node}: {outcome.why or f'status {outcome.status}'}"


# ---------------------------------------------------------------------- the job has come to its end


def all_done(nodes: Iterable[str], outcomes: Mapping[str, Outcome]) -> bool:
    return all(each in outcomes and outcomes[each].status == 0 for each in nodes)


def _is_done(case: Case) -> bool:
    return all_done(case.nodes, case.ended.outcomes)


def _done(_: Case) -> Verdict:
    return _leave("done", Status.DONE, "done on every node")


def _is_signalled(case: Case) -> bool:
    return case.signal is not None


def _signalled(case: Case) -> Verdict:
    number = case.signal or 0
    return _leave("the scheduler ends it", 128 + number, f"signal {number}")


# ---------------------------------------------------------------------- hardware


def _asks_again(case: Case) -> list[Outcome]:
    return [each for each in case.said if each.status == Status.RESTART_TOGETHER]


def _faulty(case: Case) -> list[Outcome]:
    return [each for each in case.said if each.fault and each.status in _AWAY]


def _healing(case: Case) -> list[Outcome]:
    return [each for each in _asks_again(case) if each.fault]


def _has_fault(case: Case) -> bool:
    return bool(_faulty(case) or _healing(case))


def _of_fault(case: Case) -> Verdict:
    """Those that are out of service are left out; the others wait until they are well."""
    faulty, healing = _faulty(case), _healing(case)
    return Verdict(
        row="a fault",
        why="; ".join(_words(each) for each in (*faulty, *healing)),
        whys={each.node: each.next_why for each in healing},
        pause_s=HELD_PAUSE_S if any(each.waited_s > 0 for each in healing) else 0.0,
        left_out=frozenset(each.node for each in faulty),
    )


def _has_lost(case: Case) -> bool:
    return bool(case.lost) and case.reruns


def _of_loss(case: Case) -> Verdict:
    lost = ", ".join(case.lost)
    return Verdict(
        row="a node is lost", why=f"the job has lost {lost}", whys={}, left_out=frozenset(case.lost)
    )


# ---------------------------------------------------------------------- the job's own


def _with_status(case: Case, status: int) -> Outcome | None:
    return next((each for each in case.said if each.status == status), None)


def _has(status: Status) -> Callable[[Case], bool]:
    return lambda case: _with_status(case, status.value) is not None


def _leaves_with(row: str, status: Status) -> Row:
    def decides(case: Case) -> Verdict:
        found = _with_status(case, status.value)
        assert found is not None
        return _leave(row, status, _words(found), found)

    return Row(row, _has(status), decides)


def _again(case: Case) -> Verdict:
    asking = _asks_again(case)
    return Verdict(
        row="again",
        why="; ".join(_words(each) for each in asking),
        whys={each.node: each.next_why for each in asking},
        pause_s=max(each.pause_s for each in asking),
        decided_by=asking[0],
    )


def _failed(case: Case) -> Outcome | None:
    return next((each for each in case.said if each.status != 0 and not each.signalled), None)


def _has_failed(case: Case) -> bool:
    return _failed(case) is not None


def _own(case: Case) -> Verdict:
    failed = _failed(case)
    assert failed is not None
    return _leave("failed", failed.status, _words(failed), failed)


# ---------------------------------------------------------------------- nobody says why


def _is_silent(case: Case) -> bool:
    return bool(case.silent) and case.reruns and case.silent_before < SILENT_IN_ROW


def _of_silence(case: Case) -> Verdict:
    """A supervisor that was killed, a step that could not begin, a node that does not answer."""
    silent = ", ".join(case.silent)
    return Verdict(
        row="silent",
        why=f"nothing is known of {silent}; srun ended with status {case.ended.status}",
        whys={},
        pause_s=2.0**case.silent_before,
        doubtful=frozenset(case.silent),
    )


def _is_silent_again(case: Case) -> bool:
    return bool(case.silent) and case.reruns


def _of_too_much_silence(case: Case) -> Verdict:
    silent = ", ".join(case.silent)
    why = f"nothing is known of {silent}, after {case.silent_before} more runs that nobody explained"
    return Verdict(row="silent too often", why=why, whys={}, is_elsewhere=True)


def _ended_one(case: Case) -> Outcome | None:
    """A command may end with 0 when it is asked to end."""
    return next((each for each in case.said if each.signalled and each.status != 0), None)


def _was_ended(case: Case) -> bool:
    return _ended_one(case) is not None


def _of_its_end(case: Case) -> Verdict:
    """Only the step was ended, by a person: they do not want it again."""
    ended = _ended_one(case)
    assert ended is not None
    return _leave("ended by somebody", ended.status, _words(ended))


def _otherwise(case: Case) -> Verdict:
    return _leave("nothing is known", case.ended.status or 1, f"srun ended with status {case.ended.status}")


ROWS: Final = (
    Row("done", _is_done, _done),
    Row("the scheduler ends it", _is_signalled, _signalled),
    Row("a fault", _has_fault, _of_fault),
    Row("a node is lost", _has_lost, _of_loss),
    _leaves_with("a bad policy", Status.BAD_POLICY),
    _leaves_with("given up", Status.GIVEN_UP),
    Row("again", lambda case: bool(_asks_again(case)), _again),
    _leaves_with("another placement", Status.RESCHEDULE),
    Row("failed", _has_failed, _own),
    Row("silent", _is_silent, _of_silence),
    Row("silent too often", _is_silent_again, _of_too_much_silence),
    Row("ended by somebody", _was_ended, _of_its_end),
    Row("nothing is known", lambda _: True, _otherwise),
)


def waited(
    nodes: Iterable[str], ended: Ended, before: Mapping[str, float], pause_s: float
) -> Mapping[str, float]:
    """How long each node was held in a row of runs in which its command never began, up to the next run."""
    found = {}
    for node in nodes:
        outcome = ended.outcomes.get(node)
        if outcome is not None and outcome.waited_s > 0:
            found[node] = before.get(node, 0.0) + outcome.waited_s + pause_s
    return found
